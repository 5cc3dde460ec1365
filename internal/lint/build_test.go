package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBuildsWithoutCgo builds and starts the program as on a machine without a C compiler.
func TestBuildsWithoutCgo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sluice")
	build := exec.Command("go", "build", "-o", program, "./cmd/sluice")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(program, "--version").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "sluice")
}
