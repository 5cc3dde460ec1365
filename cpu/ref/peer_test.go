package ref_test

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
	"github.com/sluice-ai/sluice/storage/gguf"
)

var peer = flag.String("peer", "", "the yardstick's driver: ask it for what testdata lacks")

// TestLikePeer compares logits of specimens with llama.cpp's (v0.5.0, float32 cache), which are in testdata/peer, and
// the tokens that follow the prompt there, each the likeliest one.
func TestLikePeer(t *testing.T) {
	f, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", "qwen3.gguf"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	follow := readFollowing(t)
	for i := range backendtest.Specimens {
		s := &backendtest.Specimens[i]
		t.Run(s.Name, func(t *testing.T) {
			tokens := backendtest.SpecimenTokens()
			path := filepath.Join(t.TempDir(), s.Name+".gguf")
			form := archtest.Write(t, path, s, &f.Meta)
			golden := filepath.Join("testdata", "peer", s.Name+".f32")
			if s.Arch == "t5" {
				answersLikePeer(t, path, golden, s, follow)
				return
			}
			if _, err := os.Stat(golden); err != nil && *peer != "" {
				askPeer(t, path, golden, tokens, form)
			}
			if *peer != "" && follow[s.Name] == nil && form != ir.Encoder {
				follow[s.Name] = following(t, path, tokens)
				writeFollowing(t, follow)
			}
			data, err := os.ReadFile(golden)
			require.NoError(t, err)
			next := follow[s.Name]
			if s.Name == "phimoe" { // two experts that are as likely as each other share a row here, and do not in llama.cpp
				require.Len(t, next, 5, "then there are such")
			} else {
				require.Equal(t, form != ir.Encoder, len(next) == followed)
			}
			all := append(tokens, next[:max(0, len(next)-1)]...)
			got := backendtest.Logits(t, ref.New(), archtest.Open(t, path, nil), all)
			width := len(got) / len(all)
			for _, pos := range shown {
				for j := range width {
					if got[pos*width+j] < -1e29 {
						continue // left out of the file, too
					}
					require.GreaterOrEqual(t, len(data), 4, "position %d, feature %d", pos, j)
					want := math.Float32frombits(binary.LittleEndian.Uint32(data))
					data = data[4:]
					require.InDelta(t, want, got[pos*width+j], s.Tolerance, "position %d, feature %d", pos, j)
				}
			}
			require.Empty(t, data)
			for i, id := range next {
				row := got[(len(tokens)-1+i)*width:][:width]
				require.InDelta(t, slices.Max(row), row[id], 2*s.Tolerance, "token %d is %d", i, id)
			}
		})
	}
}

// followed is how many tokens follow a prompt.
const followed = 32

// followingFile holds the tokens that follow the prompt, by specimen.
var followingFile = filepath.Join("testdata", "peer", "greedy.json")

func readFollowing(t *testing.T) map[string][]int32 {
	all := map[string][]int32{}
	data, err := os.ReadFile(followingFile)
	if *peer == "" || err == nil {
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &all))
	}
	return all
}

func writeFollowing(t *testing.T, all map[string][]int32) {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		ids, err := json.Marshal(all[name])
		require.NoError(t, err)
		lines = append(lines, fmt.Sprintf("%q: %s", name, ids))
	}
	text := "{\n" + strings.Join(lines, ",\n") + "\n}\n"
	require.NoError(t, os.WriteFile(followingFile, []byte(text), 0o644))
}

// following asks the yardstick for the tokens that follow a prompt. It reads one token at a time: of CogVLM it takes
// the first row's logits for the last one's. Of Chameleon it reads all at once: it ends where no logits are wanted.
func following(t *testing.T, path string, tokens []int32) []int32 {
	ids := strings.Trim(strings.ReplaceAll(fmt.Sprint(tokens), " ", ","), "[]")
	command := []string{"greedy", "-m", path, "--tokens", ids, "-n", strconv.Itoa(followed), "--ignore-eos", "-t", "1",
		"--kv", "f32", "--fa", "0"}
	if !firstAlone(path) {
		command = append(command, "--batch", "1")
	}
	out, err := exec.Command(*peer, command...).Output()
	require.NoError(t, err)
	var said struct{ IDs []int32 }
	require.NoError(t, json.Unmarshal(out, &said))
	require.Len(t, said.IDs, followed)
	return said.IDs
}

// firstAlone says whether the yardstick leaves tokens out of the first row that it computes, and not of the others.
func firstAlone(path string) bool { return strings.HasPrefix(filepath.Base(path), "chameleon") }

// TestRerankerLikePeer compares a reranker's score with llama.cpp's.
func TestRerankerLikePeer(t *testing.T) {
	f, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", "qwen3.gguf"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	f.Meta.Set("tokenizer.ggml.token_type_count", uint32(1))
	s, tokens := &backendtest.Reranker, backendtest.SpecimenTokens()
	path := filepath.Join(t.TempDir(), s.Name+".gguf")
	archtest.Write(t, path, s, &f.Meta)
	golden := filepath.Join("testdata", "peer", s.Name+".f32")
	if *peer != "" {
		all := peerSays(t, path, tokens, "embed")
		require.NoError(t, os.WriteFile(golden, all[:4], 0o644)) // what follows the only class is not said
	}
	data, err := os.ReadFile(golden)
	require.NoError(t, err)
	score := backendtest.Logits(t, ref.New(), archtest.Open(t, path, nil), tokens)
	require.Len(t, score, len(tokens)) // of every row: the first one's is the text's
	require.InDelta(t, math.Float32frombits(binary.LittleEndian.Uint32(data)), score[0], s.Tolerance)
}

// shown are the positions whose logits are kept.
var shown = []int{0, 9, 23}

// askPeer keeps logits, or of an encoder the vectors of rows. What is never chosen is left out.
func askPeer(t *testing.T, path, golden string, tokens []int32, form ir.Form) {
	command := []string{"logits"}
	if form == ir.Encoder {
		command = []string{"embed", "--pooling", "none"}
	}
	data := peerSays(t, path, tokens, command...)
	row := len(data) / len(tokens)
	var kept []byte
	for _, pos := range shown {
		for at := pos * row; at < (pos+1)*row; at += 4 {
			if math.Float32frombits(binary.LittleEndian.Uint32(data[at:])) != -math.MaxFloat32 {
				kept = append(kept, data[at:][:4]...)
			}
		}
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
	require.NoError(t, os.WriteFile(golden, kept, 0o644))
}

// peerSays is what the yardstick writes for tokens.
func peerSays(t *testing.T, path string, tokens []int32, command ...string) []byte {
	all := filepath.Join(t.TempDir(), "said")
	ids := strings.Trim(strings.ReplaceAll(fmt.Sprint(tokens), " ", ","), "[]")
	command = append(command, "-m", path, "--tokens", ids, "-o", all, "-t", "1", "--kv", "f32", "--fa", "0")
	if firstAlone(path) {
		command = append(command, "--batch", "1")
	}
	out, err := exec.Command(*peer, command...).CombinedOutput()
	require.NoError(t, err, string(out))
	data, err := os.ReadFile(all)
	require.NoError(t, err)
	return data
}
