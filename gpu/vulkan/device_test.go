//go:build cgo && linux

package vulkan

import (
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// someTypes are of each kind: floats, blocks with kernels of their own, one without. The others' kernels have tests of
// their own.
var someTypes = []quant.Type{quant.F32, quant.F16, quant.Q8_0, quant.Q4_K, quant.Q5_1}

// borrowed is the device under test as a driver, which is closed with the test, and what was submitted to it.
type borrowed struct {
	*device
	submits, marks int // submissions, and the timestamps of the last one
}

func (b *borrowed) Close(bool) error { return nil }

func (b *borrowed) Submit(all []driver.Recording, waits []driver.Point, signal driver.Point) error {
	b.submits, b.marks = b.submits+1, 0
	for _, r := range all {
		b.marks += r.Marks()
	}
	return b.device.Submit(all, waits, signal)
}

// device is the device under test, as a backend.
func (g *gpu) device() *exec.Device {
	d, _ := g.watched()
	return d
}

// watched is device, with what is submitted to it.
func (g *gpu) watched() (*exec.Device, *borrowed) {
	b := &borrowed{device: newDevice(g.lib, g.d, g.k)}
	b.facts.Software = true // on a card, too, a step is one submission, and kernels are compiled when they are needed
	d, err := exec.New(func() (driver.Device, error) { return b, nil })
	require.NoError(g.t, err)
	g.t.Cleanup(func() { require.NoError(g.t, d.Close()) })
	return d, b
}

// TestConformance takes minutes on a CPU: its time is compiling kernels. With -short it is a slice of that, which
// reaches the kernels that are listed here; the others have their own tests.
func TestConformance(t *testing.T) {
	t.Parallel()
	g := open(t)
	if !testing.Short() {
		backendtest.Conformance(t, g.device(), ref.New(), someTypes)
		return
	}
	backendtest.Slice(t, g.device(), ref.New(), quant.Q8_0)
	var reached []string
	for v := range g.k.compiled {
		reached = append(reached, strings.TrimSuffix(strings.TrimSuffix(v.module.String(), "_matrix"), "_plain"))
	}
	require.Subset(t, reached, strings.Fields("adapt append around attend_any combine conv each embed_f32 embed_q8_0 finite group "+
		"group_norm head_copy head_linear_f32 matmul_float_f32 matmul_q8_0 matvec_f32 matvec_q8_0 merge_any norm repack_f32 "+
		"repack_q8_0 route scan turn"))
}

// TestErrors is the part of TestConformance that short runs have, too: a card that overlooks a broken row answers with
// what it made of it.
func TestErrors(t *testing.T) {
	backendtest.Errors(t, open(t).device(), []quant.Type{quant.Q8_0})
}

// TestFixtures: fast kernels may be ten times as far from the reference as its tolerance.
func TestFixtures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	t.Parallel()
	backendtest.Fixtures(t, backendtest.Every{Device: open(t).device()}, archtest.Open, 10)
}

// TestSpecimens: as TestFixtures, of the other architectures, by the oracle.
func TestSpecimens(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Parallel()
	archtest.Specimens(t, open(t).device(), ref.New())
}

// TestArchitectures: TestFixtures, TestEmbeddings and TestSpecimens have all that there are.
func TestArchitectures(t *testing.T) {
	var names []string
	for i := range backendtest.Specimens {
		names = append(names, backendtest.Specimens[i].Arch)
	}
	files, err := filepath.Glob(filepath.Join(testref.Dir(t), "fixtures", "*.gguf"))
	require.NoError(t, err)
	for _, path := range files {
		f, err := gguf.Open(path)
		require.NoError(t, err)
		name, _ := f.Meta.Get("general.architecture")
		names = append(names, name.(string))
		require.NoError(t, f.Close())
	}
	require.Subset(t, names, arch.Names())
}

func mini(t *testing.T) *backendtest.Model {
	return archtest.Open(t, "../../internal/mini/mini-Q4_K_M.gguf", nil)
}

func TestMini(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Parallel()
	c, err := cpu.New(2, "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	archtest.Mini(t, open(t).device(), c, 40)
}

// TestGolden: trained models answer as recorded wherever the recorder and exact arithmetic are sure: K-quants, experts,
// and bfloat16.
func TestGolden(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Parallel()
	archtest.Golden(t, open(t).device())
}

// TestTwoInFlight: a step goes on from what the one before draws before anybody has seen it, and the answer is the one
// of steps that wait for each other.
func TestTwoInFlight(t *testing.T) {
	m := small(t)
	x := backendtest.Run(t, open(t).device(), m, 4)
	alone := []int32{100}
	for pos := range 6 {
		s, done := x.Begin(0, alone[pos:pos+1], pos, true)
		require.NoError(t, <-done)
		alone = append(alone, s.Drawn[0])
	}
	together := []int32{100}
	first, ended := x.Begin(0, []int32{100}, 0, true)
	for pos := 1; pos < 6; pos++ {
		next, nextEnded := x.Begin(pos, []int32{backend.DrawOf(0)}, pos, true)
		require.NoError(t, <-ended)
		together = append(together, first.Drawn[0])
		first, ended = next, nextEnded
	}
	require.NoError(t, <-ended)
	require.Equal(t, alone, append(together, first.Drawn[0]))
}

// TestLost: what runs on a card that is lost ends with an error that says so, and a program that is compiled after that
// finds the card opened again.
func TestLost(t *testing.T) {
	var opened, lost atomic.Int64
	trial := &vk.Trial{Fails: func(call string) vk.Result {
		if call == "vkCreateDevice" {
			opened.Add(1)
			lost.Store(0)
		}
		if call == "vkQueueSubmit" && lost.Load() > 0 {
			return vk.Lost
		}
		return vk.Success
	}}
	d, err := Open(0, Options{Trial: trial})
	if err != nil {
		missing(t, err)
	}
	defer func() { require.NoError(t, d.Close()) }()
	m := small(t)
	compile := func() *backendtest.Running {
		c := backend.Config{Limits: backend.Limits{KV: backend.KVF16, Blocks: backendtest.Blocks(m.Program, 3),
			MaxRows: 1, MaxWanted: 1, Flight: 2}}
		x, err := d.Compile(m.Bound, c)
		require.NoError(t, err)
		for r := range m.Weights {
			require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
		}
		return &backendtest.Running{Model: x, T: t, Of: m}
	}
	x := compile()
	want := x.Logits([]int32{1, 2}, 1)
	lost.Store(1)
	s := x.Steps()[0]
	for i := range m.Segments {
		err = errors.Join(err, backend.Enqueue(x, i, s))
	}
	x.Finish(s, func(e error) { err = errors.Join(err, e) })
	require.ErrorIs(t, err, backend.ErrLost)
	require.ErrorIs(t, x.Upload(0, 0, m.Weights[0]), backend.ErrLost)
	require.NoError(t, x.Close())
	require.EqualValues(t, 1, opened.Load())
	x = compile()
	require.EqualValues(t, 2, opened.Load())
	require.Equal(t, want, x.Logits([]int32{1, 2}, 1))
	require.NoError(t, x.Close())
	require.Regexp(t, "^vulkan .+", d.Name())
}

// TestUnsupported: experts in slots need a route of the same device, and those whose choice is known elsewhere say so.
func TestUnsupported(t *testing.T) {
	b := ir.NewBuilder("odd", func(string) bool { return false })
	x := b.Embed("token_embd", 64, 64)
	b.Layer(0)
	b.FFN()
	w := b.Route(b.Linear(x, "router", 2), "", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 1, Scale: 1})
	x = b.Add(x, b.Experts(x, w, "gate", "up", "down", 32, 1, ir.SiLU))
	b.Logits(b.Rows(x))
	p, err := b.Program(100)
	require.NoError(t, err)
	tensors := []ir.Tensor{{Name: "token_embd.weight", Type: quant.F32, Shape: []int{64, 64}}}
	for name, shape := range map[string][]int{"router": {64, 2}, "gate": {64, 32, 2}, "up": {64, 32, 2}, "down": {32, 64, 2}} {
		tensors = append(tensors, ir.Tensor{Name: "blk.0." + name + ".weight", Type: quant.F32, Shape: shape})
	}
	bound, err := ir.Bind(p, tensors)
	require.NoError(t, err)
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF16, MaxRows: 1, MaxWanted: 1},
		Layout: backend.Layout{Slots: [][]int{{0, 1}}}}
	for i := range p.Segments {
		if p.Segments[i].Kind == ir.SegExperts {
			c.Segments = append(c.Segments, i)
		}
	}
	_, err = open(t).device().Compile(bound, c)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "experts 0: experts cannot share slots where their route is computed elsewhere")
}

// TestMeasure: copies have rates, whatever they are worth on a device that is a CPU.
func TestMeasure(t *testing.T) {
	r, err := open(t).device().Traits().Meter.Rates()
	require.NoError(t, err)
	require.Greater(t, r.Bus, 1e6)
	require.Greater(t, r.Memory, 1e6)
	for what, seconds := range map[string]float64{"copy": r.Copy, "launch": r.Launch, "turn": r.Turn} {
		require.Positive(t, seconds, what)
		require.Less(t, seconds, 1., what)
	}
	t.Logf("%.1f and %.1f GB/s; a copy takes %.1f µs, a launch %.1f, a turn %.1f", r.Bus/1e9, r.Memory/1e9, r.Copy*1e6,
		r.Launch*1e6, r.Turn*1e6)
}

// TestEmbeddings: as TestFixtures, of encoders and the models that are used like them.
func TestEmbeddings(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Parallel()
	d := backendtest.Every{Device: open(t).device()}
	backendtest.Embeddings(t, d, archtest.Open, 10)
	t.Run("BothWays", func(t *testing.T) { backendtest.BothWays(t, d, ref.New(), 2, 3, 64, 150) })
}

// TestTablesStay: the deepest step there can be fits into the block tables that recordings know, in each class.
func TestTablesStay(t *testing.T) {
	d := open(t).device()
	m := small(t)
	const blocks, spans = 70, 20
	x, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
		Blocks: backendtest.Blocks(m.Program, blocks), MaxRows: 4 * spans, MaxWanted: 1, MaxSpans: spans, Flight: 2}})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	for r := range m.Weights {
		require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
	}
	step := func(spans, depth int) {
		s := x.Steps()[0]
		s.Tokens, s.Spans, s.Wanted = make([]int32, spans), s.Spans[:0], []int32{int32(spans - 1)}
		table := make([]int32, depth)
		for i := range table {
			table[i] = int32(i)
		}
		for i := range spans {
			s.Spans = append(s.Spans, backend.Span{Row: i, Rows: 1, Pos: depth*backend.BlockSize - 1,
				Tables: backendtest.Tables(m.Program, table)})
		}
		for i := range m.Segments {
			require.NoError(t, backend.Enqueue(x, i, s))
		}
		done := make(chan error, 1)
		x.Finish(s, func(err error) { done <- err })
		require.NoError(t, <-done)
	}
	step(spans, 1)
	step(spans, blocks)
}
