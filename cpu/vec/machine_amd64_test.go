//go:build !purego

package vec

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"

	"github.com/sluice-ai/sluice/internal/testref"
)

// TestTwinRanWhatTheMachineHas: see that of package kernels.
func TestTwinRanWhatTheMachineHas(t *testing.T) {
	x, want := &cpu.X86, Generic
	if x.HasAVX2 && x.HasFMA {
		want = AVX2
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
			want = AVX512
		}
	}
	require.Equal(t, want, Best(), "the best set by what the processor has")
	twins(t, 1, 100)
	names := []string{"plain Go", "avx2", "avx512"}
	t.Logf("routines of cpu/vec: RAN %v", names[:want+1])
	if want < AVX512 {
		t.Logf("routines of cpu/vec: NOT RUN, this processor lacks the instructions: %v", names[want+1:])
	}
}

// TestTwinOnArm64 runs arm64's routines on an emulated processor of the oldest instructions, and some of them on one of
// the newest.
func TestTwinOnArm64(t *testing.T) {
	if testing.Short() {
		t.Skip("an emulated processor takes its time")
	}
	run := testref.Arm64(t)
	require.Contains(t, run("cortex-a72", "^Test"), "routines of cpu/vec: RAN neon")
	require.Contains(t, run("max", "^TestTwin(Coded|RanWhatTheMachineHas)$"), "routines of cpu/vec: RAN neon")
}
