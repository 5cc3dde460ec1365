package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// greeting is what both sides say of themselves first. Their JSON names are part of the protocol.
type greeting struct {
	Protocol int    `json:"protocol"`
	Build    string `json:"build"`
	Device   string `json:"device"`           // its name: what computes, and by which arithmetic
	Driver   string `json:"driver,omitempty"` // of it
	Free     int64  `json:"free,omitempty"`   // bytes of memory that a lender still lends
	Halves   bool   `json:"halves,omitempty"`
	Read     int64  `json:"read,omitempty"` // bytes a second that it reads of its memory; 0: it was not measured
}

// fits says why a device and a lender cannot compute one model together.
func (g *greeting) fits(lender *greeting, name string) error {
	switch {
	case lender.Protocol != g.Protocol:
		return fmt.Errorf("%s speaks protocol %d, and we %d: run the same sluice on both", name, lender.Protocol, g.Protocol)
	case lender.Build != g.Build:
		return fmt.Errorf("%s is sluice %s, and we are %s: answers could differ: run the same on both", name, lender.Build,
			g.Build)
	case g.Device != "" && (lender.Device != g.Device || lender.Driver != g.Driver):
		return fmt.Errorf("%s computes on %s, and we on %s: answers would depend on which computes what: have both compute "+
			"alike (SLUICE_CPU names kernels of a processor)", name, called(lender), called(g))
	}
	return nil
}

func called(g *greeting) string {
	if g.Driver == "" {
		return g.Device
	}
	return g.Device + " by " + g.Driver
}

// job is what a lender compiles.
type job struct {
	Program  *ir.Program  `json:"program"`
	Types    []quant.Type `json:"types"`
	Piece    int64        `json:"piece"`
	Segments []int        `json:"segments"`
	KV       formats      `json:"kv"`
	Blocks   []int        `json:"blocks"`
	Rows     int          `json:"rows"`
	Wanted   int          `json:"wanted"`
	Spans    int          `json:"spans"`
}

// formats are the formats of caches, by their names.
type formats struct {
	All      string   `json:"all"`
	Windowed string   `json:"windowed,omitempty"`
	Layers   []string `json:"layers,omitempty"`
}

// terms is what a lender says of what it has compiled.
type terms struct {
	Weights int64 `json:"weights"`
	KV      int64 `json:"kv"`
	Scratch int64 `json:"scratch"`
	Grain   int   `json:"grain"`
	Blocks  []int `json:"blocks"` // bytes of one, by cache class
}

// newJob describes what a configuration asks for, or says what of it cannot be asked of another machine.
func newJob(p *ir.Bound, c *backend.Config) (*job, error) {
	var lacks []string
	for _, x := range []struct {
		wanted bool
		what   string
	}{
		{c.Inputs != nil, "sums of what goes into products"},
		{c.Stored != nil, "rows that caches store"},
		{len(p.Sites) > 0, "adapters"},
		{slices.ContainsFunc(c.Slots, func(fit []int) bool { return len(fit) != 1 }), "weights that stream"},
	} {
		if x.wanted {
			lacks = append(lacks, x.what)
		}
	}
	if len(lacks) > 0 {
		return nil, fmt.Errorf("another machine has no use for %s: leave them out, or compute here: %w",
			strings.Join(lacks, ", "), errors.ErrUnsupported)
	}
	j := &job{Program: p.Program, Types: p.Types, Piece: p.Piece, Segments: c.Segments, Blocks: c.Blocks, Rows: c.MaxRows,
		Wanted: c.MaxWanted, Spans: c.MaxSpans}
	if j.Segments == nil {
		j.Segments = p.All()
	}
	return j, j.KV.name(&c.KV)
}

// name names formats, and refuses those that are not known by their names.
func (f *formats) name(kv *backend.KV) error {
	f.All, f.Windowed = kv.Format.Name, kv.Windowed.Name
	for i := range kv.Layers {
		f.Layers = append(f.Layers, kv.Layers[i].Name)
	}
	back, err := f.formats()
	same := err == nil && back.Format.K == kv.Format.K && back.Format.V == kv.Format.V && back.Windowed == kv.Windowed &&
		slices.Equal(back.Layers, kv.Layers)
	if !same {
		return fmt.Errorf("caches in %s have no name that another machine knows: %w", kv, errors.ErrUnsupported)
	}
	return nil
}

// formats are what the names mean. That of all caches is not read where each has its own.
func (f *formats) formats() (kv backend.KV, err error) {
	for _, name := range f.Layers {
		one, err := formatOf(name)
		if err != nil {
			return kv, err
		}
		kv.Layers = append(kv.Layers, one)
	}
	if kv.Layers != nil {
		kv.Format = backend.Format{Name: f.All, K: kv.Layers[0].K, V: kv.Layers[0].V}
	} else if kv.Format, err = formatOf(f.All); err != nil {
		return kv, err
	}
	if f.Windowed != "" {
		kv.Windowed, err = formatOf(f.Windowed)
	}
	return kv, err
}

func formatOf(name string) (backend.Format, error) {
	k, v, mixed := strings.Cut(name, "/")
	if !mixed {
		v = k
	}
	kv, err := backend.MixKV(k, v)
	return kv.Format, err
}

// bound is the program with its weights' types, checked as one is that was recorded here, and the configuration.
func (j *job) bound() (p *ir.Bound, c backend.Config, err error) {
	if j.Program == nil || len(j.Types) != len(j.Program.Weights) {
		return nil, c, errors.New("a program without weights' types")
	}
	defer func() { // Check is for programs of ours, and may trip over what is none
		if r := recover(); r != nil {
			err = fmt.Errorf("what came is no program: %v", r)
		}
	}()
	if err := ir.Check(j.Program); err != nil {
		return nil, c, err
	}
	tensors := make([]ir.Tensor, len(j.Types))
	for i := range tensors {
		w := &j.Program.Weights[i]
		tensors[i] = ir.Tensor{Name: w.Name, Type: j.Types[i], Shape: w.Shape()}
	}
	if p, err = ir.Bind(j.Program, tensors); err != nil {
		return nil, c, err
	}
	p.Piece = j.Piece
	c.Segments = j.Segments
	c.Limits = backend.Limits{Blocks: j.Blocks, MaxRows: j.Rows, MaxWanted: j.Wanted, MaxSpans: j.Spans, Flight: 1}
	c.KV, err = j.KV.formats()
	return p, c, err
}

// mostRows bounds the rows of a lender's steps.
const mostRows = 1 << 16

// least is how many bytes of memory a program takes at least: its weights, its caches, and what steps end in.
func least(p *ir.Bound, c *backend.Config) (bytes int64, err error) {
	large := func(n int) bool { return n > math.MaxInt32 }
	if c.MaxRows > mostRows || c.MaxWanted > mostRows || slices.ContainsFunc(c.Blocks, large) {
		return 0, fmt.Errorf("steps of %d rows: want at most %d", max(c.MaxRows, c.MaxWanted), mostRows)
	}
	weights, caches, states := p.Only(c.Segments).Used()
	for r, used := range weights {
		if used {
			bytes += p.Size(ir.Ref(r))
		}
	}
	of := func(class int) int64 {
		if class < len(c.Blocks) {
			return int64(c.Blocks[class])
		}
		return 0
	}
	for i, l := range p.KV {
		if caches[i] {
			bytes += of(l.Class) * int64(c.KV.Of(i, p.Classes[l.Class]).BlockBytes(l))
		}
	}
	for i, l := range p.States {
		if states[i] {
			bytes += of(l.Class) * int64(backend.StateBytes(l))
		}
	}
	return bytes + 4*int64(c.MaxWanted)*int64(p.OutputWidth()), nil
}

// read reads what is JSON, whole and of no other build.
func read(text []byte, x any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(x); err != nil {
		return fmt.Errorf("%w: %w", errGarbage, err)
	}
	if d.More() {
		return fmt.Errorf("%w: something follows", errGarbage)
	}
	return nil
}
