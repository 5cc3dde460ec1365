package lora

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Loaded is an adapter for one program, in memory outside the Go heap.
type Loaded struct {
	ir.Adapter
	Bytes  int64    // of memory
	Digest [32]byte // of all that decides what it computes

	memory []byte
}

// Close frees the memory: no step may still read it.
func (b *Loaded) Close() error {
	memory := b.memory
	b.memory, b.Updates = nil, nil
	return mem.Free(memory)
}

// Size is the most bytes that Bind takes for the changes, as far as they fit.
func (a *Adapter) Size() (n int64) {
	for i := range a.Changes {
		c := &a.Changes[i]
		n += 4 * (int64(c.in())*int64(ir.Padded(c.rank())) + int64(c.rank())*int64(ir.Padded(c.out())))
	}
	return n
}

// Bind finds the matrices that the adapter changes, and reports all that does not fit at once. Numbers that are halves,
// or would be times a power of two, are kept as such.
func (a *Adapter) Bind(p *ir.Program) (*Loaded, error) {
	sites, err := a.fit(p)
	if err != nil {
		return nil, err
	}
	b := &Loaded{Adapter: ir.Adapter{Updates: make([]*ir.Update, len(p.Sites))}}
	if b.memory, err = mem.Alloc(a.Size()); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	f, sum, left := &faults{of: a.Name}, sha256.New(), b.memory
	for i := range a.Changes {
		c := &a.Changes[i]
		u := &ir.Update{Rank: c.rank(), Scale: c.Scale}
		fmt.Fprintf(sum, "%s %d %x\n", c.Matrix, u.Rank, math.Float32bits(u.Scale))
		if left, err = c.load(u, left, sum); err != nil {
			f.addf(c.Matrix, "%v", err)
		}
		b.Updates[sites[i]] = u
	}
	b.Bytes = int64(len(b.memory) - len(left))
	sum.Sum(b.Digest[:0])
	if err := f.err("cannot be used"); err != nil {
		_ = b.Close() // the first error says more
		return nil, err
	}
	return b, nil
}

// Fits says what keeps the adapter from changing a program; nil: it fits.
func (a *Adapter) Fits(p *ir.Program) error {
	_, err := a.fit(p)
	return err
}

// fit finds the site of each change.
func (a *Adapter) fit(p *ir.Program) ([]int, error) {
	f, sites := &faults{of: a.Name}, make([]int, len(a.Changes))
	if a.Arch != "" && a.Arch != p.Arch {
		return nil, fmt.Errorf("%s: is an adapter of a model of architecture %.40q, and this one is %s", a.Name, a.Arch, p.Arch)
	}
	byName := map[string]int{}
	for i := range p.Sites {
		byName[p.Sites[i].Name] = i
	}
	for i := range a.Changes {
		c := &a.Changes[i]
		at, ok := byName[c.Matrix]
		if !ok {
			f.addf(c.A.Name, "changes %.100s, which is no matrix of this model that an adapter can change "+
				"(experts, routers and vectors are none)", c.Matrix)
			continue
		}
		s := &p.Sites[at]
		if c.in() != s.In {
			want := []int{c.rank(), s.In}
			if c.Tokens {
				want = []int{s.In, c.rank()}
			}
			f.addf(c.A.Name, "is %s, want %s: %s of the model has %d columns", dims(c.A.Shape), dims(want), s.Name, s.In)
		}
		if c.out() != s.Out {
			f.addf(c.B.Name, "is %s, want %s: %s of the model has %d rows", dims(c.B.Shape), dims([]int{s.Out, c.rank()}),
				s.Name, s.Out)
		}
		sites[i] = at
	}
	return sites, f.err("does not fit the model")
}

func dims(shape []int) string { return fmt.Sprintf("%d×%d", shape[0], shape[1]) }

// load reads both factors into memory, and returns what is left of it.
func (c *Change) load(u *ir.Update, memory []byte, sum hash.Hash) ([]byte, error) {
	a, err := c.A.values()
	if err != nil {
		return memory, err
	}
	b, err := c.B.values()
	if err != nil {
		return memory, err
	}
	in, out, width := c.in(), c.out(), ir.Padded(u.Rank)
	wide := make([]float32, max(in*width, u.Rank*ir.Padded(out)))
	for i := range in {
		for k := range u.Rank {
			if c.Tokens {
				wide[i*width+k] = a[i*u.Rank+k]
			} else {
				wide[i*width+k] = a[k*in+i]
			}
		}
	}
	memory = keep(&u.A, &u.Scale, wide[:in*width], memory, sum)
	clear(wide)
	stride := ir.Padded(out)
	for o := range out {
		row := o
		if c.Rows != nil {
			row = c.Rows[o]
		}
		for k := range u.Rank {
			wide[k*stride+o] = b[row*u.Rank+k]
		}
	}
	return keep(&u.B, &u.Scale, wide[:u.Rank*stride], memory, sum), nil
}

// values reads a tensor, whose numbers have to be finite.
func (t *Tensor) values() ([]float32, error) {
	values := make([]float32, t.Shape[0]*t.Shape[1])
	if err := t.Read(values); err != nil {
		return nil, err
	}
	for i, x := range values {
		if x-x != 0 {
			return nil, fmt.Errorf("value %d of %.100q is %v", i, t.Name, x)
		}
	}
	return values, nil
}

// topHalf is the power of two below which all halves are finite.
const topHalf = 15

// keep moves numbers into memory: as halves where that is exact, maybe after a multiplication by a power of two that
// scale undoes.
func keep(f *ir.Factor, scale *float32, wide []float32, memory []byte, sum hash.Hash) []byte {
	var most float32
	for _, x := range wide {
		most = max(most, x, -x)
	}
	shift := 0
	if _, exponent := math.Frexp(float64(most)); most > 0 {
		shift = topHalf - exponent
	}
	undone := float32(math.Ldexp(float64(*scale), -shift))
	exact := math.Ldexp(float64(undone), shift) == float64(*scale)
	f.Halves = mem.Numbers[uint16](memory)[:len(wide)]
	for i, factor := 0, math.Ldexp(1, shift); i < len(wide) && exact; i++ {
		x := float32(float64(wide[i]) * factor)
		f.Halves[i] = quant.F32ToF16(x)
		exact = quant.F16ToF32(f.Halves[i]) == x
	}
	used := 2 * len(wide)
	if exact {
		*scale = undone
	} else {
		f.Halves, f.Floats = nil, mem.Numbers[float32](memory)[:len(wide)]
		used = 4 * len(wide)
		copy(f.Floats, wide)
	}
	_ = binary.Write(sum, binary.LittleEndian, int64(used)) // a hash takes all that it is given
	sum.Write(memory[:used])
	return memory[used:]
}

// Collect has the memory freed when nobody refers to the adapter any more, instead of by Close.
func (b *Loaded) Collect() { mem.FreeAfter(b, b.memory) }
