package store

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// piecesSuffix ends the name of the list of pieces of an incomplete file.
const piecesSuffix = ".pieces"

// Sizes of pieces: a small file has about 64, and none is larger than 8 MiB. If a process is killed, the pieces that
// are not in its list must be fetched again.
const (
	leastPiece = 64 << 10
	mostPiece  = 8 << 20
	mostList   = 32 << 20 // bytes of a list of pieces; that of the largest file is smaller
)

// pieceSize returns the size of a file's pieces, except the last.
func pieceSize(size int64) int64 {
	piece := int64(leastPiece)
	for piece < mostPiece && piece*64 < size {
		piece *= 2
	}
	return piece
}

// pieces records which pieces of a file have come.
type pieces struct {
	size, each int64
	done       []bool
}

func newPieces(size int64) *pieces {
	each := pieceSize(size)
	return &pieces{size: size, each: each, done: make([]bool, (size+each-1)/each)}
}

// at returns the range of piece i in bytes: from from up to, but without, to.
func (p *pieces) at(i int) (from, to int64) {
	return int64(i) * p.each, min(int64(i+1)*p.each, p.size)
}

// bytes returns the number of bytes that have come.
func (p *pieces) bytes() (n int64) {
	for i, done := range p.done {
		if from, to := p.at(i); done {
			n += to - from
		}
	}
	return n
}

// head returns the first line of the list. A line with a number follows for each piece that has come, in any order.
func (p *pieces) head() string {
	return fmt.Sprintf("sluice pieces 1: %d of %d bytes\n", len(p.done), p.size)
}

// read reads a list, whose last line may be incomplete, and reports whether all of it was valid.
func (p *pieces) read(list []byte) bool {
	text, isOurs := bytes.CutPrefix(list, []byte(p.head()))
	if !isOurs {
		return false
	}
	for line := range strings.Lines(string(text)) {
		number, whole := strings.CutSuffix(line, "\n")
		i, err := strconv.ParseUint(number, 10, 31)
		if err != nil || !whole || i >= uint64(len(p.done)) || strconv.FormatUint(i, 10) != number {
			return false
		}
		p.done[i] = true
	}
	return true
}
