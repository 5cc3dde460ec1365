//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/quant"
)

// team is two cards that compute each layer together: the first two, or the first one twice if there is only one.
func team(t testing.TB) *exec.Team {
	t.Helper()
	o := options(t)
	list, err := List(o)
	require.NoError(t, err)
	var all []*exec.Device
	for n := range 2 {
		d, err := exec.New(func() (driver.Device, error) { return openDevice(min(n, len(list)-1), &o) })
		require.NoError(t, err)
		all = append(all, d)
	}
	d, err := exec.NewTeam(all...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// TestTeams: as on gpu/null, but for what takes the fake driver long.
func TestTeams(t *testing.T) {
	if testing.Short() {
		t.Skip("takes tens of seconds on the fake driver")
	}
	backendtest.Teamed(t, team(t), ref.New(), []quant.Type{quant.Q8_0, quant.F16})
}
