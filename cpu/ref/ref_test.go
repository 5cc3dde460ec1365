package ref_test

import (
	"testing"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backendtest"
)

func TestConformance(t *testing.T) {
	backendtest.Conformance(t, ref.New(), ref.New(), backendtest.Codecs())
}
