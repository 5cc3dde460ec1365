//go:build cgo && linux

package vulkan

import (
	"testing"

	"github.com/sluice-ai/sluice/internal/backendtest"
)

func TestMain(m *testing.M) { backendtest.Main(m, 10) }
