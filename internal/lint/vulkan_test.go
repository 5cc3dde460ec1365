//go:build unix

package lint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

// gpuBytes is what the program may grow by with Vulkan and CUDA, shaders and kernels and all.
const gpuBytes = 4_400_000

// TestWithoutGPU: for those who have no GPU the program is a little larger, and nothing else: no loader of Vulkan is
// looked for unless a GPU is asked for.
func TestWithoutGPU(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program twice")
	}
	testref.Tool(t, "a C compiler", "cc")
	folder := t.TempDir()
	build := func(cgo string) (program string, size int64) {
		program = filepath.Join(folder, "sluice-"+cgo)
		c := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./cmd/sluice")
		c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED="+cgo)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		info, err := os.Stat(program)
		require.NoError(t, err)
		return program, info.Size()
	}
	program, with := build("1")
	_, without := build("0")
	t.Logf("%d bytes with Vulkan, %d without: %d more", with, without, with-without)
	require.Greater(t, with, without)
	require.LessOrEqual(t, with-without, int64(gpuBytes))

	looks := func(args ...string) bool {
		c := exec.Command(program, args...)
		c.Env = []string{"LD_DEBUG=libs", "HOME=" + folder, "PATH=" + os.Getenv("PATH")} // glibc tells what it looks for
		var out, said bytes.Buffer
		c.Stdout, c.Stderr = &out, &said
		require.NoError(t, c.Run(), "%s", said.String())
		require.Contains(t, said.String(), "libc.so", "the dynamic linker says nothing: the test sees nothing")
		return strings.Contains(said.String(), "libvulkan")
	}
	question := []string{"--temp", "0", "What is the capital of France?"}
	require.True(t, looks(append([]string{"run", "--device", "auto"}, question...)...), "this test would not see it")
	for _, args := range [][]string{{"--version"}, {"inspect"}, {"tokenize", "one"},
		append([]string{"run", "--device", "cpu"}, question...)} {
		require.False(t, looks(args...), "%q", args)
	}
	nodes, err := filepath.Glob("/dev/dri/renderD*")
	require.NoError(t, err)
	nvidia, err := filepath.Glob("/dev/nvidia[0-9]*")
	require.NoError(t, err)
	require.Equal(t, len(nodes)+len(nvidia) > 0, looks(append([]string{"run"}, question...)...), "where there is no GPU")
}
