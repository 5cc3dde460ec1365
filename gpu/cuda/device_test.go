//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// someTypes are of each kind: floats, blocks with kernels of their own, one without. The others' kernels have tests of
// their own.
var someTypes = []quant.Type{quant.F32, quant.F16, quant.Q8_0, quant.Q4_K, quant.Q5_1}

// engine is the first card as gpu/exec has it.
func engine(t testing.TB) *exec.Device {
	t.Helper()
	d, err := Open(0, options(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d.(*exec.Device)
}

// onCard says whether tests compute on a card.
func onCard() bool { return os.Getenv(testOn) == "card" }

// needsCard skips a test that takes the fake driver an hour.
func needsCard(t testing.TB) {
	t.Helper()
	if !onCard() {
		t.Skip("the fake driver takes too long: " + testOn + "=card")
	}
}

// TestConformance has with -short a slice of itself, which reaches most kernels.
func TestConformance(t *testing.T) {
	if testing.Short() {
		backendtest.Slice(t, engine(t), ref.New(), quant.Q8_0)
		return
	}
	needsCard(t)
	backendtest.Conformance(t, engine(t), ref.New(), someTypes)
}

// every is a device that every program must run on: where others may refuse, a test of it fails.
type every struct{ *exec.Device }

func (d every) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	if errors.Is(err, errors.ErrUnsupported) {
		err = errors.New(err.Error())
	}
	return m, err
}

// TestFixtures: fast kernels may be ten times as far from the reference as its tolerance.
func TestFixtures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	needsCard(t)
	backendtest.Fixtures(t, every{engine(t)}, archtest.Open, 10)
}

// TestSpecimens: as TestFixtures, of the other architectures, by the oracle.
func TestSpecimens(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	needsCard(t)
	f, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", "qwen3.gguf"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	backendtest.LikeOracle(t, every{engine(t)}, ref.New(), &f.Meta, 1,
		func(m *meta.Map, has func(string) bool) (*ir.Program, error) {
			return arch.Record(m, has, arch.Options{})
		})
}

// running is a model on a device.
type running struct {
	backend.Model
	t *testing.T
	m *backendtest.Model
}

func start(t *testing.T, d backend.Device, m *backendtest.Model, rows int) *running {
	t.Helper()
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF16, Blocks: backendtest.Blocks(m.Program, 3),
		MaxRows: rows, MaxWanted: rows, Flight: d.Traits().Flight}}
	x, err := d.Compile(m.Bound, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	for r := range m.Weights {
		require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
	}
	return &running{x, t, m}
}

// logits are those of all tokens, in chunks of some sizes, the last one again and again.
func (x *running) logits(tokens []int32, chunks ...int) (all []float32) {
	x.t.Helper()
	for pos, i := 0, 0; pos < len(tokens); i++ {
		n := min(chunks[min(i, len(chunks)-1)], len(tokens)-pos)
		s := x.Steps()[i%len(x.Steps())]
		s.Tokens, s.Wanted, s.Draws = tokens[pos:pos+n], s.Wanted[:0], s.Draws[:0]
		s.Spans = []backend.Span{{Rows: n, Pos: pos, Tables: backendtest.Tables(x.m.Program, []int32{2, 0, 1})}}
		for r := range n {
			s.Wanted = append(s.Wanted, int32(r))
		}
		for i := range x.m.Segments {
			require.NoError(x.t, backend.Enqueue(x, i, s))
		}
		done := make(chan error, 1)
		x.Finish(s, func(err error) { done <- err })
		require.NoError(x.t, <-done)
		all = append(all, s.Logits[:n*x.m.OutputWidth()]...)
		pos += n
	}
	return all
}

// TestMini compares the embedded model, whose weights are Q4_K and Q6_K, with the processor's logits, in chunks of any
// size, to the bit.
func TestMini(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute on the fake driver")
	}
	tokens := make([]int32, 6)
	if onCard() {
		tokens = make([]int32, 40)
	}
	for i := range tokens {
		tokens[i] = int32(i * 97 % 8000)
	}
	m := archtest.Open(t, "../../internal/mini/mini-Q4_K_M.gguf", nil)
	c, err := cpu.New(2, "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	x := start(t, engine(t), m, len(tokens))
	got, want := x.logits(tokens, len(tokens)), start(t, c, m, len(tokens)).logits(tokens, len(tokens))
	require.Less(t, backendtest.Relative(got, want), 0.1)
	require.Equal(t, got, x.logits(tokens, 5, 1, 7))
	require.Equal(t, got, x.logits(tokens, 1))
}

// TestGolden: trained models answer as recorded wherever the recorder and exact arithmetic are sure: K-quants, experts,
// and bfloat16.
func TestGolden(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	needsCard(t)
	archtest.Golden(t, engine(t))
}
