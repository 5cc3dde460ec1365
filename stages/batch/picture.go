package batch

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Picture is rows of a prompt that are vectors: tokens only hold their places.
type Picture struct {
	At   int     // position of the first row
	Grid ir.Grid // of the rows, which lie line by line
	Both bool    // its rows see each other, so that one step computes all of them
	Hash [sha256.Size]byte
	Seen any // the vectors, of which nothing is known here
}

// Rows is how many rows it has.
func (p *Picture) Rows() int { return p.Grid.Height * p.Grid.Width }

// End is the position after its last row.
func (p *Picture) End() int { return p.At + p.Rows() }

// key is what the prefix tree knows a row by: a number that no token has. Equal rows of equal pictures have the same.
func (p *Picture) key(row int) int32 {
	const half = 1 << 30
	var at [8]byte
	binary.LittleEndian.PutUint64(at[:], uint64(row))
	sum := sha256.Sum256(append(at[:], p.Hash[:]...))
	return -half - int32(binary.LittleEndian.Uint32(sum[:])%half)
}

// keys sets the numbers of a text's rows that pictures have.
func (t *Terms) keys(text []int32) {
	for i := range t.Pictures {
		p := &t.Pictures[i]
		for row := range p.Rows() {
			text[p.At+row] = p.key(row)
		}
	}
}

// Place is the place of a position on several axes: in a picture time stands still, and lines and columns go on from
// there. What follows comes after the farthest of both.
func (t *Terms) Place(pos int) ir.Place {
	at := pos
	for i := range t.Pictures {
		p := &t.Pictures[i]
		switch {
		case pos < p.At:
			return same(at)
		case pos < p.End():
			first, row := at-(pos-p.At), pos-p.At
			return ir.Place{int32(first), int32(first + row/p.Grid.Width), int32(first + row%p.Grid.Width)}
		}
		at -= p.Rows() - max(p.Grid.Height, p.Grid.Width)
	}
	return same(at)
}

func same(at int) ir.Place { return ir.Place{int32(at), int32(at), int32(at)} }

// whole shortens n rows from a position on so that no picture whose rows see each other is cut; most rows could be
// computed if need be. 0: there is no room for all of the picture that comes first.
func (t *Terms) whole(from, n, most int) int {
	for i := range t.Pictures {
		p := &t.Pictures[i]
		end := from + n
		if !p.Both || end <= p.At || end >= p.End() {
			continue
		}
		if n = p.At - from; n <= 0 {
			n = p.End() - from
		}
		if n > most {
			return 0
		}
		return n
	}
	return n
}

// sees is the last position that a row sees.
func (t *Terms) sees(pos int) int32 {
	for i := range t.Pictures {
		if p := &t.Pictures[i]; p.Both && pos >= p.At && pos < p.End() {
			return int32(p.End() - 1)
		}
	}
	return int32(pos)
}

// both says whether some of n rows from a position on see rows after them.
func (t *Terms) both(from, n int) bool {
	for i := range t.Pictures {
		if p := &t.Pictures[i]; p.Both && from < p.End() && p.At < from+n {
			return true
		}
	}
	return false
}
