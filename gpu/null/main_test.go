package null

import (
	"testing"

	"github.com/sluice-ai/sluice/internal/backendtest"
)

func TestMain(m *testing.M) { backendtest.Main(m, 25) }
