package kernels

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/cuda/kernels/source"
	"github.com/sluice-ai/sluice/internal/testref"
)

// mostBytes of packed PTX are part of the program, whether or not there is a card.
const mostBytes = 1_700_000

func TestSize(t *testing.T) {
	files, err := fs.ReadDir(code, ".")
	require.NoError(t, err)
	all := int64(0)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		all += info.Size()
	}
	require.Positive(t, all)
	require.LessOrEqual(t, all, int64(mostBytes), "of %d modules", len(files))
}

// TestModules: every module is there whole, and made of the sources beside it.
func TestModules(t *testing.T) {
	units, err := source.Find(".")
	require.NoError(t, err)
	var names []string
	for _, u := range units {
		names = append(names, u.Name)
		m, err := Load(u.Name)
		require.NoError(t, err, "%s: run make gen", u.Name)
		require.True(t, strings.HasPrefix(m.PTX, "// module "+u.Name+"\n// sources "+u.Hash()+"\n.version "),
			"%s is not made of its sources: run make gen", u.Name)
		require.NotEmpty(t, m.Args, "%s has no kernels", u.Name)
		require.Equal(t, strings.Count(m.PTX, ".entry"), len(m.Args), "%s has a kernel without one structure", u.Name)
		for kernel, size := range m.Args {
			require.Zero(t, size%8, "the arguments of %s: end their structure with a pad", kernel)
		}
	}
	require.Equal(t, names, Names())
}

// TestAssembles: NVIDIA's assembler, where somebody has it, takes every module; it says what spills. clang does not
// look at inline assembly.
func TestAssembles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	testref.Tool(t, "nvidia-cuda-toolkit", "ptxas")
	units, err := source.Find(".")
	require.NoError(t, err)
	for _, u := range units {
		t.Run(u.Name, func(t *testing.T) {
			t.Parallel()
			m, err := Load(u.Name)
			require.NoError(t, err)
			path := filepath.Join(t.TempDir(), u.Name+".ptx")
			require.NoError(t, os.WriteFile(path, []byte(m.PTX), 0o600))
			said, err := exec.Command("ptxas", "-v", "-arch="+max(u.Card(), "sm_90"), "-o", path+".cubin", path).CombinedOutput()
			require.NoError(t, err, "%s", said)
			t.Logf("%s", said)
		})
	}
}

func TestNoModule(t *testing.T) {
	_, err := Load("nothing")
	require.ErrorContains(t, err, "called nothing")
}
