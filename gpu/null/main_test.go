package null

import (
	"log"
	"os"
	"testing"

	"github.com/sluice-ai/sluice/internal/backendtest"
)

func TestMain(m *testing.M) {
	if err := backendtest.Checks(25); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}
