package ir

import "github.com/sluice-ai/sluice/internal/quant"

// Site is a matrix of a program that adapters may change: one that an Adapt follows.
type Site struct {
	Name    string // of the weight, as the file has it, without ".weight"; of a tied head: output
	In, Out int    // columns and rows of the matrix
	Token   bool   // it is a table of Out features for each of In tokens
}

// Adapter is changes of low rank to matrices of one program (LoRA), computed beside them. Nobody changes it.
type Adapter struct {
	Updates []*Update // by Program.Sites; nil: that matrix stays as it is
}

// Update is a change of one matrix: y += Scale·B(A·x). Both factors lie with the rows of a product's right side: row i
// of A has the Rank numbers that feature i of x (or token i) is multiplied by, row k of B those of all outputs.
type Update struct {
	Rank  int
	Scale float32
	A     Factor // [Site.In][Padded(Rank)]
	B     Factor // [Rank][Padded(Site.Out)]
}

// Factor is numbers in rows, as float32 or, where that loses nothing, as halves. Rows end with zeros up to Padded.
type Factor struct {
	Floats []float32
	Halves []uint16
}

// At is number i.
func (f *Factor) At(i int) float32 {
	if f.Halves != nil {
		return quant.F16ToF32(f.Halves[i])
	}
	return f.Floats[i]
}

// Len is how many numbers there are.
func (f *Factor) Len() int { return len(f.Floats) + len(f.Halves) }

// Padded is the length of a factor's row of n numbers: whole vectors of what computes with it.
func Padded(n int) int { return (n + padding - 1) &^ (padding - 1) }

const padding = 16

// Applied is an adapter as a sequence has it, with the factor that its changes are multiplied by.
type Applied struct {
	*Adapter
	Scale float32
}

// Fits says whether an adapter has an update for each site of the program, or none, with factors of its size.
func (a *Adapter) Fits(p *Program) bool {
	if len(a.Updates) != len(p.Sites) {
		return false
	}
	for i, u := range a.Updates {
		if s := &p.Sites[i]; u != nil && (u.A.Len() != s.In*Padded(u.Rank) || u.B.Len() != u.Rank*Padded(s.Out)) {
			return false
		}
	}
	return true
}

// MostApplied is how many adapters a sequence may have.
const MostApplied = 16

// Ranks is the highest rank of its updates, as much as its factors' rows have.
func (a *Adapter) Ranks() (most int) {
	for _, u := range a.Updates {
		if u != nil {
			most = max(most, Padded(u.Rank))
		}
	}
	return most
}

// MostRank is the highest rank that the adapters of a sequence may have in all: devices have room for so much between
// two factors.
const MostRank = 1024
