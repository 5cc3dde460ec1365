//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/cuda/fake"
)

// TestReach: a card's memory is reached once for all, and an error says that it is not. The fake driver has one card,
// whose other context stands for another card.
func TestReach(t *testing.T) {
	f := fake.Faults(t)
	lib, err := Open(fake.Library(t))
	require.NoError(t, err)
	cards, err := lib.Devices()
	require.NoError(t, err)
	d, err := cards[0].Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	other := *d
	other.context++
	require.NoError(t, d.Reach(&other))
	for _, name := range []string{"cuDeviceCanAccessPeer", "cuCtxEnablePeerAccess"} {
		const unknown = 999
		f.Fail(name, 0, unknown)
		require.ErrorContains(t, d.Reach(&other), "reaching the memory of another card", name)
		require.NoError(t, d.Reach(d), "its own is reached without the driver")
		f.Memory(0)
	}
	f.Fail("cuCtxEnablePeerAccess", 0, int(reached))
	require.NoError(t, d.Reach(&other), "it was reached before")
}
