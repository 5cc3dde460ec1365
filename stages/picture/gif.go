package picture

import "encoding/binary"

// inspectGIF reads the size of a GIF's screen; image/gif holds frames to it.
func inspectGIF(data []byte) (Info, error) {
	if len(data) < 13 {
		return Info{}, errCut
	}
	side := func(at int) int { return int(binary.LittleEndian.Uint16(data[at:])) }
	i := Info{Format: GIF, Width: side(6), Height: side(8)}
	i.Bytes = takes(i.Width, i.Height, 2) // an interlaced frame is ordered in memory of its own
	return i, nil
}
