//go:build !purego

package vec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTwinRanWhatTheMachineHas: see that of package kernels.
func TestTwinRanWhatTheMachineHas(t *testing.T) {
	require.Equal(t, []ISA{NEON}, isas())
	twins(t, 1, 100)
	t.Log("routines of cpu/vec: RAN neon")
}
