//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

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
