//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"testing"

	"github.com/sluice-ai/sluice/internal/backendtest"
)

func TestMain(m *testing.M) { backendtest.Main(m, 10) }
