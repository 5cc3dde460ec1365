package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

// Keys come from the command line, files and the environment, all at once.
func TestKeys(t *testing.T) {
	long := strings.Repeat("k", 1<<17)
	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, []byte("\ufefffirst \n# ours\n\nsecond\r\n"+long+"\n"), 0o600))
	e := envtest.NewEnv("third\n")
	e.Lookup = func(name string) (string, bool) { return " fourth\n", name == env.KeyVariable }
	c := Serve{APIKey: []string{" zeroth"}, APIKeyFile: []string{file, "-"}}
	keys, err := c.keys(e)
	require.NoError(t, err)
	require.Equal(t, []string{"zeroth", "first", "second", long, "third", "fourth"}, keys)
	e.Lookup = func(string) (string, bool) { return "", true }
	_, err = (&Serve{}).keys(e)
	require.ErrorContains(t, err, "SLUICE_API_KEY is empty")
}
