package store

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// piecesSuffix ends the name of the list of pieces of a file that grows.
const piecesSuffix = ".pieces"

// Pieces of a file: what arrives between two entries of the list is lost with the process. At most 8 MiB each, and
// about 64 of a small file.
const (
	leastPiece = 64 << 10
	mostPiece  = 8 << 20
	mostList   = 32 << 20 // bytes of a list, whose file is as large as files can be
)

// pieceSize is how long the pieces of a file are, but for the last.
func pieceSize(size int64) int64 {
	piece := int64(leastPiece)
	for piece < mostPiece && piece*64 < size {
		piece *= 2
	}
	return piece
}

// pieces says which parts of a file are there.
type pieces struct {
	size, each int64
	done       []bool
}

func newPieces(size int64) *pieces {
	each := pieceSize(size)
	return &pieces{size: size, each: each, done: make([]bool, (size+each-1)/each)}
}

// at is where piece i lies: from, and up to.
func (p *pieces) at(i int) (from, to int64) {
	return int64(i) * p.each, min(int64(i+1)*p.each, p.size)
}

// bytes counts those that are there.
func (p *pieces) bytes() (n int64) {
	for i, done := range p.done {
		if from, to := p.at(i); done {
			n += to - from
		}
	}
	return n
}

// head is the first line of the list; one line with a number follows for each piece that is there, in any order.
func (p *pieces) head() string {
	return fmt.Sprintf("sluice pieces 1: %d of %d bytes\n", len(p.done), p.size)
}

// read takes a list over as far as it is complete: its last line may have been cut off. It says whether all of it was.
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
