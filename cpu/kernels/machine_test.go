//go:build (amd64 || arm64) && !purego

package kernels

import (
	"slices"
	"testing"

	"github.com/sluice-ai/sluice/internal/testref"
)

// TestTwinRanWhatTheMachineHas: Twin says nothing of a set that is not there. What the processor lacks is named, for
// who reads CI's last lines; what it has and no test could run is a fault there.
func TestTwinRanWhatTheMachineHas(t *testing.T) {
	here, missing := processorHas()
	for _, typ := range types {
		ran := checkTwin(t, shape{typ, 33, 2, 64, 0, tame, 1})
		if slices.Equal(here, ran) {
			continue
		}
		testref.Missing(t, "assembly", "%s: the processor has %v, assembly ran of %v", typ, here, ran)
	}
	t.Logf("products of cpu/kernels: RAN %v", here)
	if len(missing) > 0 {
		t.Logf("products of cpu/kernels: NOT RUN, this processor lacks the instructions: %v", missing)
	}
}
