package ref_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
)

// answersLikePeer compares the answer to a prompt that an encoder reads with llama.cpp's: each token is the likeliest
// one, and logits of some are those of testdata. The yardstick's driver has no command for such models: -peer names one
// whose greedy has the prompt encoded, begins behind the token that answers begin behind, and writes logits to -o.
func answersLikePeer(t *testing.T, path, golden string, s *backendtest.Specimen, follow map[string][]int32) {
	tokens := backendtest.SpecimenTokens()
	if *peer != "" && follow[s.Name] == nil {
		follow[s.Name] = askForAnswer(t, path, golden, tokens)
		writeFollowing(t, follow)
	}
	data, err := os.ReadFile(golden)
	require.NoError(t, err)
	answer := follow[s.Name]
	require.Len(t, answer, followed)
	processor, err := cpu.New(1, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, processor.Close()) }()
	for _, d := range []backend.Device{ref.New(), processor} {
		got := answered(t, d, path, tokens, answer[:followed-1])
		width := len(got) / followed
		want := data
		for _, pos := range shown {
			for j := range width {
				require.InDelta(t, math.Float32frombits(binary.LittleEndian.Uint32(want)), got[pos*width+j], s.Tolerance,
					"%s: token %d, feature %d", d.Name(), pos, j)
				want = want[4:]
			}
		}
		require.Empty(t, want)
		for i, id := range answer {
			row := got[i*width:][:width]
			require.InDelta(t, slices.Max(row), row[id], 2*s.Tolerance, "%s: token %d is %d", d.Name(), i, id)
		}
	}
}

// answered is the logits of each token of an answer, and of the one that follows it.
func answered(t *testing.T, d backend.Device, path string, prompt, answer []int32) []float32 {
	ear, begin := archtest.Ear(t, path)
	text := slices.Concat(prompt, []int32{begin}, answer)
	return backendtest.Answer(t, d, archtest.Open(t, path, nil), text, backendtest.Logits(t, d, ear, prompt))
}

// askForAnswer asks the yardstick for an answer, and keeps logits of some of its tokens.
func askForAnswer(t *testing.T, path, golden string, tokens []int32) []int32 {
	all := filepath.Join(t.TempDir(), "said")
	ids := strings.Trim(strings.ReplaceAll(fmt.Sprint(tokens), " ", ","), "[]")
	out, err := exec.Command(*peer, "greedy", "-m", path, "--tokens", ids, "-n", strconv.Itoa(followed), "--ignore-eos",
		"-o", all, "-t", "1", "--kv", "f32", "--fa", "0").Output()
	require.NoError(t, err)
	var said struct{ IDs []int32 }
	require.NoError(t, json.Unmarshal(out, &said))
	data, err := os.ReadFile(all)
	require.NoError(t, err)
	var kept []byte
	for _, pos := range shown {
		kept = append(kept, data[pos*len(data)/followed:(pos+1)*len(data)/followed]...)
	}
	require.NoError(t, os.WriteFile(golden, kept, 0o644))
	return said.IDs
}
