//go:build cgo && linux

package vulkan

import (
	"log"
	"os"
	"testing"

	"github.com/sluice-ai/sluice/internal/backendtest"
)

func TestMain(m *testing.M) {
	if err := backendtest.Checks(10); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}
