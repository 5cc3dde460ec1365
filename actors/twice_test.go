package actors

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/vulkan"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/place"
)

// onGPU has an engine compute on the first GPU, whose kernels are kept in a folder.
func onGPU(t *testing.T, o vulkan.Options) func(*Config) {
	if list, err := vulkan.List(); err != nil || len(list) == 0 {
		testref.Missing(t, "vulkan", "no Vulkan device: %v", err)
	}
	return func(c *Config) {
		gpu, err := vulkan.Open(0, o)
		require.NoError(t, err)
		require.NoError(t, c.Device.Close())
		c.Device = gpu
		c.Sequences, c.Rows = 1, 2 // a CPU compiles the kernels of each shape of a step
	}
}

// shortPrompts are of few kernels.
func shortPrompts() [][]int32 { return [][]int32{{1, 2}, {7, 8, 9}} }

// atOnce has engines answer at the same time.
func atOnce(t *testing.T, want []string, prompts [][]int32, engines ...*Engine) {
	var all []*sync.WaitGroup
	for _, e := range engines {
		all = append(all, readers(t, e, prompts, want))
	}
	for _, wg := range all {
		wg.Wait()
	}
}

// Two engines of one program compute on one card, each with a device of its own, and answer as one does alone. One of
// them is closed while the other answers.
func TestTwoEnginesOnGPU(t *testing.T) {
	on := onGPU(t, vulkan.Options{Cache: t.TempDir()})
	one, all := startFixture(t, fixture, on), shortPrompts()
	want := alone(t, one, all, 24)
	t.Run("both", func(t *testing.T) { atOnce(t, want, all, one, startFixture(t, fixture, on)) })
	atOnce(t, want, all, one)
}

// besideVariable says that this process is the other one of TestTwoProcessesOnGPU, and where its kernels are kept.
const besideVariable = "SLUICE_TEST_BESIDE"

// Two processes compute on one card, and answer alike; one of them is killed in the middle of its answers, and the
// other one goes on.
func TestTwoProcessesOnGPU(t *testing.T) {
	all := shortPrompts()
	if folder := os.Getenv(besideVariable); folder != "" {
		e := startFixture(t, fixture, onGPU(t, vulkan.Options{Cache: folder}))
		for { // until it is killed
			for _, answer := range alone(t, e, all, 24) {
				println(besideVariable, strconv.Quote(answer))
			}
		}
	}
	folder := t.TempDir()
	e := startFixture(t, fixture, onGPU(t, vulkan.Options{Cache: folder}))
	want := alone(t, e, all, 24)

	other := exec.Command(os.Args[0], "-test.run=^TestTwoProcessesOnGPU$")
	other.Env = append(os.Environ(), besideVariable+"="+folder)
	out, err := other.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	defer func() { _ = other.Process.Kill() }() // it was, unless the test failed
	lines, said := bufio.NewScanner(out), []string(nil)
	for len(said) < 2*len(all) && lines.Scan() {
		if answer, ok := strings.CutPrefix(lines.Text(), besideVariable+" "); ok {
			said = append(said, answer)
		}
		if len(said) == len(all) {
			atOnce(t, want, all, e)
		}
	}
	for i, answer := range said {
		require.Equal(t, strconv.Quote(want[i%len(want)]), answer)
	}
	require.Len(t, said, 2*len(want))
	require.NoError(t, other.Process.Kill())
	atOnce(t, want, all, e)
	require.Error(t, other.Wait())
	require.Zero(t, e.Snapshot().FailedSteps)
}

// Where no budget was asked for, weights take what the driver says is free when the card is opened, with a margin:
// others have the rest. What has no room there streams, and answers are what they were.
func TestPlanLeavesOthersTheirMemory(t *testing.T) {
	const steps = 1 << 30
	cache, all := t.TempDir(), shortPrompts()
	whole := startFixture(t, fixture, onGPU(t, vulkan.Options{Cache: cache}))
	want := alone(t, whole, all, 8)
	free := whole.Plan().Beyond().Weights
	trial := &vk.Trial{Facts: func(f *vk.Facts) {
		f.Has.Budget = true
		for i := range f.Heaps {
			f.Heaps[i].Size, f.Heaps[i].Budget, f.Heaps[i].Used = 64<<30, 40<<30+steps+uint64(free), 40<<30
		}
	}}
	e := startFixture(t, fixture, func(c *Config) {
		onGPU(t, vulkan.Options{Cache: cache, Trial: trial})(c)
		c.Blocks, c.Context = 0, 64
	})
	require.LessOrEqual(t, e.Plan().Beyond().Weights, place.ForWeights(free, true))
	require.True(t, e.spec.streams())
	require.Equal(t, want, alone(t, e, all, 8))
}
