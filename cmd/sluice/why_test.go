package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/internal/tokentrace"
)

// atTimes replaces times, which are others each time.
var atTimes = regexp.MustCompile(`\d+\.\d+ ms`)

// TestWhy: what is said of a token of the embedded model: free, of a grammar, and of a mixture the experts.
func TestWhy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.trace")
	record := func(args ...string) {
		o := sluice("", append([]string{"run", "--record", path, "--force", "--seed", "7"}, args...)...)
		require.Equal(t, exitDone, o.code, o.stderr)
	}
	why := func(args ...string) outcome {
		o := sluice("", append([]string{"why", path}, args...)...)
		o.stdout = atTimes.ReplaceAllString(o.stdout, "# ms")
		return o
	}
	var all strings.Builder
	record("-n", "12", "--temp", "2", "--top-p", "0.9", "--repeat-penalty", "1.3", "Tell me about the sea.")
	for _, token := range []string{"0", "7"} {
		o := why("0", token)
		require.Equal(t, exitDone, o.code, o.stderr)
		for _, line := range strings.SplitAfter(o.stdout, "\n") {
			if !strings.HasPrefix(line, "Its time") { // which causes there are depends on the machine
				all.WriteString(line)
			}
		}
		require.Contains(t, o.stdout, "compute # ms")
	}
	matches(t, "why", all.String())

	o := why("0", "7", "--json", "--top", "2")
	require.Equal(t, exitDone, o.code, o.stderr)
	var said struct {
		Request, Token, Position int
		Recorded, Computed       struct{ ID int32 }
		Stages                   []struct {
			Stage  string
			Left   int
			Top    []struct{ Text string }
			Chosen *struct{ ID int32 }
		}
		Waited map[string]float64 `json:"waited_ms"`
	}
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &said))
	require.Equal(t, said.Recorded, said.Computed)
	require.Len(t, said.Stages[0].Top, 2)
	require.Equal(t, said.Computed.ID, said.Stages[len(said.Stages)-1].Chosen.ID)
	require.Positive(t, said.Waited["compute"])

	for want, args := range map[string][]string{
		"there is no request 1":     {"1", "0"},
		"there is no request x":     {"x", "0"},
		"token 12 is not there":     {"0", "12"},
		"--top is 21: want 1 to 20": {"0", "0", "--top", "21"},
	} {
		o := why(args...)
		require.NotEqual(t, exitDone, o.code)
		require.Contains(t, o.stderr, want)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(changeToken(t, text, 0, 3)), 0o600))
	o = why("0", "3")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stdout, "here it is another one")
	require.Contains(t, o.stderr, "was recorded")
}

// TestWhyExperts: of a mixture it says which experts computed the token.
func TestWhyExperts(t *testing.T) {
	model := filepath.Join(testref.Dir(t), "models", "moe-Q4_K_M.gguf")
	path := filepath.Join(t.TempDir(), "a.trace")
	o := sluice("", "run", "-m", model, "--record", path, "-n", "3", "hello there")
	require.Equal(t, exitDone, o.code, o.stderr)
	o = sluice("", "why", path, "0", "2", "-m", model, "--json")
	require.Equal(t, exitDone, o.code, o.stderr)
	var said struct{ Experts [][]int32 }
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &said))
	require.Len(t, said.Experts, 5)
	for _, layer := range said.Experts {
		require.Len(t, layer, 4)
		require.IsIncreasing(t, layer)
	}
	require.Equal(t, lastExperts(t, path), said.Experts, "as they were recorded")
}

// lastExperts are those of the last row in a trace, by layer.
func lastExperts(t *testing.T, path string) [][]int32 {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	r, err := tokentrace.NewReader(bytes.NewReader(text))
	require.NoError(t, err)
	all := make([][]int32, len(r.Model.Layers))
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if x, ok := e.(*tokentrace.Chosen); ok {
			all[x.Layer] = x.Experts[len(x.Experts)-r.Model.Layers[x.Layer].Used:]
		}
	}
}
