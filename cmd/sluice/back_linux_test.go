package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sluice-ai/sluice/internal/backend"
)

// backAsked in the environment names what TestBackAsSoonAsRead measures: models with tokens of a prompt, such as
// embedded:12000,FILE.gguf:32000.
const backAsked = "SLUICE_BACK"

// backTurns is how often a server is killed, and its files are read directly in turn, where that is measured.
const backTurns = 5

// A prompt whose blocks are in the folder comes back after kill -9 and a start with the answer that it had. How long
// that takes beside a direct read of the same files, both with the page cache dropped, is told, and fails nothing:
// a machine that has other things to do decides it. So is how long the first token takes with the blocks in memory:
// the last tokens of a prompt are computed in any case.
func TestBackAsSoonAsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("a long prompt is computed, and servers are killed")
	}
	asked, turns := os.Getenv(backAsked), backTurns
	if asked == "" {
		asked, turns = "embedded:1500", 1
	}
	for _, one := range strings.Split(asked, ",") {
		model, text, found := strings.Cut(one, ":")
		require.True(t, found, "%s: want MODEL:TOKENS", one)
		tokens, err := strconv.Atoi(text)
		require.NoError(t, err)
		t.Run(filepath.Base(model), func(t *testing.T) { backAfterKill(t, model, tokens, turns) })
	}
}

func backAfterKill(t *testing.T, model string, tokens, turns int) {
	state := t.TempDir()
	flags := []string{"--state", state, "--ctx", strconv.Itoa(tokens + 64)}
	if model != "embedded" {
		flags = append(flags, "-m", model)
	}
	r := rand.New(rand.NewPCG(9, uint64(tokens)))
	prompt := make([]int, tokens)
	for i := range prompt {
		prompt[i] = 100 + r.IntN(1500)
	}
	start := func() (string, *exec.Cmd, time.Duration) {
		from := time.Now()
		url, c := startKept(t, flags...)
		for {
			if a, err := http.Get(url + "/health"); err == nil {
				_ = a.Body.Close()
				if a.StatusCode == http.StatusOK {
					return url, c, time.Since(from)
				}
			}
			require.Less(t, time.Since(from), patient)
			time.Sleep(time.Millisecond)
		}
	}
	url, server, _ := start()
	want, computed, _ := answered(t, url, prompt)
	files := settledFiles(t, filepath.Join(state, "kv"))
	var firsts, agains, starts, reads []time.Duration
	for range turns {
		kill(server, syscall.SIGKILL)
		dropped(t, files)
		bytes, read := readDirectly(t, files)
		dropped(t, files)
		var began time.Duration
		url, server, began = start()
		got, first, cached := answered(t, url, prompt)
		require.Equal(t, want, got)
		require.Equal(t, (tokens-1)/backend.BlockSize*backend.BlockSize, cached, "it is read, not computed")
		_, again, _ := answered(t, url, prompt)
		firsts, agains = append(firsts, first), append(agains, again)
		starts, reads = append(starts, began), append(reads, read)
		t.Logf("%d files of %.1f MB: read in %v; a start of %v, then the first token after %v, again after %v", len(files),
			float64(bytes)/1e6, read, began, first, again)
	}
	kill(server, syscall.SIGKILL)
	middle := func(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }
	first, began, read := middle(firsts), middle(starts), middle(reads)
	again, wanted := middle(agains), (began + read).Seconds()
	t.Logf("%d tokens, computed in %v: medians of %d: start %v, first token %v, with blocks in memory %v, direct read %v; "+
		"%.2f of start and read, %.2f but for what is computed with blocks in memory, too", tokens, computed, turns, began, first,
		again, read, (began+first).Seconds()/wanted, (began+first-again).Seconds()/wanted)
}

// answered is what a server draws after a prompt, when its first token came, and how many of the prompt's were cached.
func answered(t *testing.T, url string, prompt []int) (answer string, first time.Duration, cached int) {
	body, err := json.Marshal(map[string]any{"prompt": prompt, "n_predict": 8, "temperature": 0, "stream": true,
		"ignore_eos": true, "n_probs": 1})
	require.NoError(t, err)
	r, err := http.NewRequest(http.MethodPost, url+"/completion", bytes.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer k")
	from := time.Now()
	a, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer a.Body.Close()
	for lines := bufio.NewReader(a.Body); ; {
		line, err := lines.ReadString('\n')
		if strings.HasPrefix(line, "data:") {
			if first == 0 {
				first = time.Since(from)
			}
			var event struct {
				Content string          `json:"content"`
				Probs   json.RawMessage `json:"completion_probabilities"`
				Timings struct {
					Cached int `json:"cache_n"`
				}
			}
			require.NoError(t, json.Unmarshal([]byte(line[len("data:"):]), &event))
			cached = max(cached, event.Timings.Cached)
			answer += fmt.Sprintf("%s %s\n", event.Content, event.Probs)
		}
		if err != nil {
			require.Equal(t, http.StatusOK, a.StatusCode, "%s", line)
			return answer, first, cached
		}
	}
}

// settledFiles are the files of a folder when no more come.
func settledFiles(t *testing.T, folder string) (files []string) {
	for last := -1; len(files) != last || last == 0; time.Sleep(500 * time.Millisecond) {
		last, files = len(files), nil
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, _ error) error {
			if d != nil && d.Type().IsRegular() {
				files = append(files, path)
			}
			return nil
		})
		require.NoError(t, err)
	}
	return files
}

// dropped has files leave the page cache.
func dropped(t *testing.T, files []string) {
	for _, path := range files {
		f, err := os.Open(path)
		require.NoError(t, err)
		require.NoError(t, f.Sync())
		require.NoError(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
		require.NoError(t, f.Close())
	}
}

// readDirectly reads files whole, eight at a time.
func readDirectly(t *testing.T, files []string) (bytes int64, took time.Duration) {
	from := time.Now()
	var readers sync.WaitGroup
	sizes := make([]int64, 8)
	for at := range sizes {
		readers.Go(func() {
			for i := at; i < len(files); i += len(sizes) {
				b, err := os.ReadFile(files[i])
				if err != nil {
					t.Error(err)
				}
				sizes[at] += int64(len(b))
			}
		})
	}
	readers.Wait()
	for _, n := range sizes {
		bytes += n
	}
	return bytes, time.Since(from)
}
