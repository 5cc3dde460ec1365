package cpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
)

// someTypes are of each kind: plain numbers, blocks of 32 and of 256, with minima and without. TestProducts has all.
var someTypes = []quant.Type{quant.F32, quant.F16, quant.Q5_1, quant.Q8_0, quant.Q4_K, quant.Q6_K}

// matrixTypes are all that the device multiplies by.
func matrixTypes() (types []quant.Type) {
	for _, t := range quant.All() {
		if kernels.Supports(t) {
			types = append(types, t)
		}
	}
	return types
}

// eachDevice runs a test on the sets of kernels that this machine has. The plain Go of the generic one is slow, and its
// bits are those of the others (TestTwin): it is run only where there is nothing else, or if it is asked for.
func eachDevice(t *testing.T, generic bool, test func(t *testing.T, d backend.Device)) {
	sets := kernels.Sets()
	if !generic && len(sets) > 1 {
		sets = sets[1:]
	}
	if racing {
		sets = sets[len(sets)-1:]
	}
	for i, set := range sets {
		t.Run(set.Name, func(t *testing.T) {
			d, err := cpu.New(1+(i+1)%3, set.Name)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, d.Close()) }) // after its models, also when the test is skipped
			test(t, d)
		})
	}
}

func TestConformance(t *testing.T) {
	eachDevice(t, false, func(t *testing.T, d backend.Device) {
		types := someTypes
		if racing { // what runs on which thread is the same for all, but for blocks of 32 and of 256
			types = []quant.Type{quant.Q8_0, quant.Q4_K}
		}
		backendtest.Conformance(t, d, ref.New(), types)
	})
}

func TestProducts(t *testing.T) {
	eachDevice(t, false, func(t *testing.T, d backend.Device) { backendtest.Products(t, d, ref.New(), matrixTypes()) })
}

// TestEmbeddings: the same of vectors.
func TestEmbeddings(t *testing.T) {
	eachDevice(t, true, func(t *testing.T, d backend.Device) { backendtest.Embeddings(t, d, archtest.Open, 5) })
}

// TestAhead: rows of a text that see each other, as a picture's do.
func TestAhead(t *testing.T) {
	eachDevice(t, false, func(t *testing.T, d backend.Device) { backendtest.Ahead(t, d, ref.New()) })
}

// TestBothWays: rows that see those after them, in a part of a block, in several blocks and in several stretches.
func TestBothWays(t *testing.T) {
	eachDevice(t, false, func(t *testing.T, d backend.Device) {
		backendtest.BothWays(t, d, ref.New(), 3, 9, 64, 65, 150, 530)
	})
}

// TestWithinReach: as TestBothWays, of rows that see so many positions on each side.
func TestWithinReach(t *testing.T) {
	eachDevice(t, false, func(t *testing.T, d backend.Device) {
		sizes := []int{3, 65, 150, 530}
		if racing { // what runs on which thread is that of TestBothWays
			sizes = sizes[:1]
		}
		backendtest.WithinReach(t, d, ref.New(), sizes...)
	})
}

// TestByDistance: as TestBothWays, of scores with biases by distance, also farther than those that differ.
func TestByDistance(t *testing.T) {
	eachDevice(t, false, func(t *testing.T, d backend.Device) { backendtest.ByDistance(t, d, ref.New(), 3, 65, 150, 300) })
}

// TestFixtures: fast kernels may be five times as far from the reference as its tolerance.
func TestFixtures(t *testing.T) {
	eachDevice(t, true, func(t *testing.T, d backend.Device) { backendtest.Fixtures(t, d, archtest.Open, 5) })
}

// TestSpecimens: as TestFixtures, of the other architectures, by the oracle.
func TestSpecimens(t *testing.T) {
	eachDevice(t, false, func(t *testing.T, d backend.Device) { archtest.Specimens(t, d, ref.New()) })
}

// TestThreads: the device says how many of the program's threads it computes on.
func TestThreads(t *testing.T) {
	for _, threads := range []int{1, 2, 3} {
		require.Equal(t, threads, device(t, threads, "").Traits().Threads)
	}
}

// TestConvolutionsWantFloats: a matrix of blocks is refused by name.
func TestConvolutionsWantFloats(t *testing.T) {
	b := ir.NewBuilder("test", func(string) bool { return false })
	x := b.Input("picture", 32, true)
	b.Block()
	b.Output("out", b.Conv2D(x, "w", ir.Conv2DArgs{Size: 1, Side: 1, Up: 1, Stride: 1}, 16))
	p, err := b.Program(0)
	require.NoError(t, err)
	bound, err := ir.Bind(p, []ir.Tensor{{Name: "w.weight", Type: quant.Q8_0, Shape: []int{32, 16}}})
	require.NoError(t, err)
	d, err := cpu.New(1, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	_, err = d.Compile(bound, backend.Config{Limits: backend.Limits{KV: backend.KVF32, MaxRows: 4}})
	require.ErrorContains(t, err, "w.weight is of type Q8_0: want F32, F16 or BF16 for a convolution")
}
