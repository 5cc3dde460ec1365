package cpu_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/system"
)

// inPlace compiles a model whose weights stay in one mapping of a file.
func inPlace(t *testing.T, m *backendtest.Model, rows int) (r *running, path string) {
	t.Helper()
	var all []byte
	for _, w := range m.Weights {
		all = append(all, w...)
	}
	path = filepath.Join(t.TempDir(), "weights")
	require.NoError(t, os.WriteFile(path, all, 0o600))
	rest := mapped(t, path)
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF16, Blocks: backendtest.Blocks(m.Program, 1),
		MaxRows: rows, MaxWanted: rows}}
	var weights backend.InPlace
	for _, w := range m.Weights {
		weights, rest = append(weights, rest[:len(w):len(w)]), rest[len(w):]
	}
	c.Weights = weights
	return startWith(t, device(t, 2, ""), m, c), path
}

// mapped maps a file until the test ends.
func mapped(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	data, err := system.MapFile(f, int(info.Size()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, system.UnmapFile(data)) })
	return data
}

// TestWeightsGoAway: a file that is cut while its weights are in use ends a step with an error that says so; when it is
// whole again, so are the answers.
func TestWeightsGoAway(t *testing.T) {
	m := toy(t, quant.Q8_0, 1)
	r, path := inPlace(t, m, 8)
	defer r.Close()
	want := logits(t, r, 8, func() int { return 8 })
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, left := range []int64{0, int64(len(whole)/2) &^ 4095} {
		require.NoError(t, os.Truncate(path, left))
		r.at(0, 8, 8)
		require.ErrorContains(t, r.run(), "a page of the weights cannot be read: the model's file was truncated")
		require.NoError(t, os.WriteFile(path, whole, 0o600))
		same(t, want, logits(t, r, 8, func() int { return 8 }), m.Vocab)
	}
}

// TestNoAllocInPlace: packing on the way allocates nothing either.
func TestNoAllocInPlace(t *testing.T) {
	for _, typ := range []quant.Type{quant.Q8_0, quant.Q5_0} { // the second recodes bits
		r, _ := inPlace(t, toy(t, typ, 1), 20)
		for _, rows := range []int{1, 20} {
			r.at(0, rows, 1)
			require.Zero(t, allocated(t, r), "%s, %d rows", typ, rows)
		}
		require.NoError(t, r.Close())
	}
}

// TestExpertsInPlace: experts are parts of one stacked matrix in the mapping, too.
func TestExpertsInPlace(t *testing.T) {
	m := mixture(t, quant.Q8_0)
	packed := start(t, device(t, 1, ""), m, backend.KVF16, 40, 40)
	defer packed.Close()
	mapped, _ := inPlace(t, m, 40)
	defer mapped.Close()
	for _, rows := range []int{1, 40} {
		next := func() int { return rows }
		same(t, logits(t, packed, 40, next), logits(t, mapped, 40, next), m.Vocab)
	}
}
