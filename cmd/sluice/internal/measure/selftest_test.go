package measure

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/judge"
)

// TestKnownAnswer: each set of kernels that this machine has gives the answer, and the bits, that the program knows.
// Who changes arithmetic on purpose changes knownBits.
func TestKnownAnswer(t *testing.T) {
	sets := kernels.Sets()
	if testing.Short() {
		sets = sets[len(sets)-1:]
	}
	for _, set := range sets {
		e := envtest.NewEnv("")
		e.Lookup = func(name string) (string, bool) { return set.Name, name == "SLUICE_CPU" }
		f, err := testAnswer(t.Context(), e, "cpu")
		require.NoError(t, err)
		require.Equal(t, Finding{What: "cpu", OK: true,
			State: `an answer: "The capital of France is Paris.", with the bits that every processor has`}, f, set.Name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := testAnswer(ctx, envtest.NewEnv(""), "cpu")
	require.ErrorIs(t, err, context.Canceled)
	require.NotEqual(t, bitsOf([]float32{1, 2}), bitsOf([]float32{2, 1}))
}

// TestSelftestSaysWhatFails: faults are told with what to do, and end the command with an error; that of a device does
// not hide those of others.
func TestSelftestSaysWhatFails(t *testing.T) {
	f := compared("cuda:1", "A card", "attention", judge.Result{Cases: 7, Left: 2, Wrong: []error{errors.New("heads of 64"),
		errors.New("heads of 80")}})
	require.Equal(t, "attention: A card computes 2 of 7 cases wrongly, first heads of 64", f.State)
	require.Contains(t, f.Do, "--device cpu")
	require.False(t, f.OK)
	f = compared("cuda:1", "A card", "attention", judge.Result{Cases: 7, Left: 2})
	require.Equal(t, Finding{What: "cuda:1", OK: true,
		State: "attention: A card computes 7 cases as the plain loops do; the processor computes 2 others"}, f)

	missing := testDrive(filepath.Join(t.TempDir(), "no such folder"))
	require.False(t, missing.OK)
	require.Contains(t, missing.State, "cannot be read again")
	require.NotEmpty(t, missing.Do)

	closed := compute.Alone{Name: "cuda:3", Open: func() (backend.Device, error) { return nil, errors.New("no such card") }}
	findings, err := testDevice(t.Context(), envtest.NewEnv(""), closed)
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Equal(t, "it cannot be opened: no such card", findings[0].State)

	e, out := envtest.NewEnv(""), new(strings.Builder)
	e.Stdout = out
	require.NoError(t, (&Doctor{}).tell(e, []Finding{f}, 0))
	require.Contains(t, out.String(), "Everything that was tested works")
	out.Reset()
	require.ErrorIs(t, (&Doctor{}).tell(e, []Finding{f, missing}, 0), errSelftest)
	require.NotContains(t, out.String(), "Everything")
}

// TestSelftestIsInterrupted: Ctrl-C ends it between two cases.
func TestSelftestIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	oracle := compute.Alone{Name: "cpu", Open: func() (backend.Device, error) { return ref.New(), nil }}
	_, err := testDevice(ctx, envtest.NewEnv(""), oracle)
	require.ErrorIs(t, err, context.Canceled)
}
