package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/library"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/storage/hub/hubtest"
	"github.com/sluice-ai/sluice/storage/store"
)

// miniHub is a hub that has the embedded model.
func miniHub(t *testing.T) *hubtest.Hub {
	t.Helper()
	h := hubtest.New()
	t.Cleanup(h.Close)
	h.Change(func(s *hubtest.Settings) { // other processes ask it: nothing else orders this before their requests
		s.Repositories["Ann/Mini-GGUF"] = map[string][]byte{"mini-Q8_0.gguf": mini.GGUF, "README.md": []byte("read me")}
	})
	return h
}

// here runs the program in process, in a store.
func here(dir string, args ...string) outcome {
	e := envtest.InStore(dir, args...)
	code := run(e)
	return outcome{code, fmt.Sprint(e.Stdout), fmt.Sprint(e.Stderr)}
}

// TestStoreCommands pulls, lists, shows, copies, runs and removes.
func TestStoreCommands(t *testing.T) {
	h, dir := miniHub(t), filepath.Join(t.TempDir(), "store")
	size := env.BinarySize(int64(len(mini.GGUF)))
	require.Equal(t, outcome{0, "no models in " + dir + ": sluice suggest names some, sluice pull NAME gets one\n", ""}, here(dir, "list"))
	pull := []string{"pull", "--endpoint", h.URL, "Ann/Mini-GGUF"}
	next := "sluice run -m Ann/Mini-GGUF:Q8_0 \"…\"\n"
	require.Equal(t, outcome{0, "Ann/Mini-GGUF:Q8_0 is in the store: " + size + "\n" + next,
		"pulling Ann/Mini-GGUF:Q8_0: " + size + "\n"}, here(dir, pull...))
	require.Equal(t, outcome{0, "Ann/Mini-GGUF:Q8_0 is up to date: " + size + "\n" + next, ""}, here(dir, pull...))
	require.Equal(t, outcome{0, "", ""}, here(dir, append(pull, "-q")...))
	require.Equal(t, outcome{0, "", ""}, here(dir, "cp", "Ann/Mini-GGUF", "mine"))

	require.Equal(t, outcome{0, "12 + 30 = 42.\n", ""}, here(dir, "run", "mine", "12 + 30"), "a name is the model")
	require.Equal(t, outcome{0, "12 + 30 = 42.\n", ""}, here(dir, "run", "Ann/Mini-GGUF", "12 + 30"))

	o := here(dir, "list", "--json")
	require.Equal(t, exitDone, o.code, o.stderr)
	var list []library.ModelRecord
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &list))
	require.Len(t, list, 2)
	require.Equal(t, "Ann/Mini-GGUF:Q8_0", list[0].Name)
	require.Equal(t, "mine", list[1].Name)
	require.True(t, list[1].Complete)
	require.Equal(t, list[0].Path, list[1].Path)
	require.Equal(t, hubtest.Commit, list[0].Revision)
	day := list[0].Pulled.Format(time.DateOnly)
	require.Equal(t, fmt.Sprintf("name                size      pulled\nAnn/Mini-GGUF:Q8_0  %s  %s\nmine                %s  %s\n",
		size, day, size, day), here(dir, "list").stdout)

	o = here(dir, "show", "mine")
	require.Equal(t, exitDone, o.code, o.stderr)
	for _, want := range []string{"name          mine\n", "from          " + h.URL + "/Ann/Mini-GGUF\n", "path          " + list[0].Path + "\n",
		"mini-Q8_0.gguf  " + size + "  weights  sha256:" + hubtest.Digest(mini.GGUF) + "\n"} {
		require.Contains(t, o.stdout, want)
	}
	o = here(dir, "run", "-m", "mine", "What is the capital of France?")
	require.Equal(t, outcome{0, "The capital of France is Paris.\n", ""}, o)

	require.Equal(t, outcome{0, "Ann/Mini-GGUF is gone: others have its files, which stay\nmine is gone: " + size + " freed\n", ""},
		here(dir, "rm", "Ann/Mini-GGUF", "mine"))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"rm", "mine"}, exitFailed, "sluice: mine is not in the store (" + dir + "): sluice list shows what is\n"},
		{[]string{"show", "mine"}, exitFailed, "sluice: mine is not in the store (" + dir + "), which sluice list shows: get it with sluice pull mine\n"},
		{[]string{"cp", "mine", "other"}, exitFailed, "sluice: mine is not in the store (" + dir + "), which sluice list shows: get it with sluice pull mine\n"},
		{[]string{"pull", "../x"}, exitUsage, "sluice: \"../x\" is no name of a model: \"..\" is not made of letters, digits, and . - _ inside\n"},
		{[]string{"cp", "mine", "a/../b"}, exitUsage, "sluice: \"a/../b\": there are no models of \"a\", only of hf.co and ollama.com\n"},
	} {
		o := here(dir, c.args...)
		require.Equal(t, outcome{c.code, "", c.want}, o)
	}
}

// A person sees a bar; --json has what programs read, and nothing beside it.
func TestPullShowsProgress(t *testing.T) {
	h, dir := miniHub(t), filepath.Join(t.TempDir(), "store")
	e := envtest.InStore(dir, "pull", "--endpoint", h.URL, "Ann/Mini-GGUF")
	e.IsTerminal = func(any) bool { return true }
	now := time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC)
	e.Now = func() time.Time { now = now.Add(time.Second); return now }
	require.Equal(t, exitDone, run(e), "%s", e.Stderr)
	require.Contains(t, fmt.Sprint(e.Stderr), "\rpulling Ann/Mini-GGUF:Q8_0 ")
	require.Contains(t, fmt.Sprint(e.Stderr), " left")
	require.NotContains(t, fmt.Sprint(e.Stderr), "\x1b")
	require.True(t, strings.HasSuffix(fmt.Sprint(e.Stderr), " \r"), "the bar is taken away")

	o := here(dir, "pull", "--endpoint", h.URL, "--json", "Ann/Mini-GGUF:Q8_0")
	require.Empty(t, o.stderr)
	var r library.ModelRecord
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &r))
	require.EqualValues(t, len(mini.GGUF), r.Arrived)
}

// TestPullSaysWhy: a person sees who is asked, and that there is another try; others get a line for each.
func TestPullSaysWhy(t *testing.T) {
	h, dir := miniHub(t), filepath.Join(t.TempDir(), "store")
	host := strings.TrimPrefix(h.URL, "http://")
	again := host + " answers 500 Internal Server Error, trying again in 1s (2 of 6)"
	for _, person := range []bool{true, false} {
		failures := 1
		h.Change(func(s *hubtest.Settings) {
			s.Fault = func(*http.Request) int {
				if failures--; failures >= 0 {
					return http.StatusInternalServerError
				}
				return 0
			}
		})
		e := envtest.InStore(dir, "pull", "--endpoint", h.URL, "Ann/Mini-GGUF")
		e.IsTerminal = func(any) bool { return person }
		e.Columns = func(any) int { return 120 }
		require.Equal(t, exitDone, run(e), "%s", e.Stderr)
		stderr := fmt.Sprint(e.Stderr)
		if person {
			require.Contains(t, stderr, "\rasking "+host+"…")
			require.Contains(t, stderr, "\r"+again)
			require.NotContains(t, stderr, "\n")
			continue
		}
		require.Equal(t, "sluice: "+again+"\n", stderr)
	}
}

// TestPullLocked: of a model whose files the hub keeps to some, the person is told what to do, and nothing is left.
func TestPullLocked(t *testing.T) {
	h, dir := miniHub(t), filepath.Join(t.TempDir(), "store")
	h.Change(func(s *hubtest.Settings) {
		s.Fault = func(r *http.Request) int {
			if strings.Contains(r.URL.Path, "/resolve/") {
				return http.StatusForbidden
			}
			return 0
		}
	})
	o := here(dir, "pull", "--endpoint", h.URL, "Ann/Mini-GGUF")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "accept its conditions at "+h.URL+"/Ann/Mini-GGUF, make a token")
	require.NotContains(t, o.stderr, "what has come is kept")
	require.Contains(t, here(dir, "list").stdout, "no models")
}

// Stopped by Ctrl-C amid its files, or failing there, a pull says how to go on; of wrong ones there is nothing to keep.
func TestPullStopped(t *testing.T) {
	h, dir := miniHub(t), filepath.Join(t.TempDir(), "store")
	words := []string{"pull", "--endpoint", h.URL, "Ann/Mini-GGUF"}
	kept := "sluice: what has come is kept: the same command goes on with it, sluice rm Ann/Mini-GGUF removes it\n"
	e := envtest.InStore(dir, words...)
	e.Interruptible = interrupted
	require.Equal(t, exitInterrupted, run(e))
	require.Equal(t, "sluice: stopped\n", fmt.Sprint(e.Stderr), "nothing has come")

	e = envtest.InStore(dir, words...)
	var stop context.CancelFunc
	e.Interruptible = func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, stop = context.WithCancel(ctx)
		return ctx, stop
	}
	h.Change(func(s *hubtest.Settings) { s.Stall = func() bool { stop(); return true } })
	require.Equal(t, exitInterrupted, run(e))
	require.Equal(t, "pulling Ann/Mini-GGUF:Q8_0: "+env.BinarySize(int64(len(mini.GGUF)))+"\n"+kept+"sluice: stopped\n",
		fmt.Sprint(e.Stderr))

	h.Change(func(s *hubtest.Settings) {
		s.Stall, s.Content[hubtest.Digest(mini.GGUF)] = nil, make([]byte, len(mini.GGUF))
	})
	o := here(dir, words...)
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "what came has the checksum")
	require.NotContains(t, o.stderr, kept)
	require.Contains(t, here(dir, "list").stdout, "no models")
}

// killedPull holds the words of a pull that is to be killed, one a line.
const killedPull = "SLUICE_TEST_KILLED_PULL"

// TestPullKilled kills the program at random moments of a pull, twenty times: whatever it left, the store works, and
// the next one goes on.
func TestPullKilled(t *testing.T) {
	if line := os.Getenv(killedPull); line != "" {
		e := env.Process()
		e.Args = strings.Split(line, "\n")
		os.Exit(run(e))
	}
	h, dir := miniHub(t), filepath.Join(t.TempDir(), "store")
	h.Change(func(s *hubtest.Settings) { s.Slow = 200 * time.Microsecond })
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	s, err := store.Open(dir)
	require.NoError(t, err)
	envtest.KeepMini(t, s, "ollama.com/library/other:latest")
	require.NoError(t, os.Remove(filepath.Join(dir, "blobs", "sha256-"+hubtest.Digest(mini.GGUF)))) // to be pulled again
	start := func() *exec.Cmd {
		c := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		c.Env = append(os.Environ(), killedPull+"=pull\n-q\n--endpoint\n"+h.URL+"\nAnn/Mini-GGUF", "SLUICE_STORE="+dir)
		require.NoError(t, c.Start())
		return c
	}
	// How far one got before it is killed is measured in bytes, which do not depend on how busy the machine is.
	finished, arrived := 0, int64(0)
	for range 20 {
		c := start()
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		until := h.Sent.Load() + random.Int64N(int64(len(mini.GGUF)/10))
		for h.Sent.Load() < until && len(ended) == 0 {
			time.Sleep(100 * time.Microsecond)
		}
		_ = c.Process.Kill()
		if err := <-ended; err == nil {
			finished++
		}
		models, err := s.List()
		require.NoError(t, err)
		for _, m := range models {
			require.NoError(t, m.Damage)
		}
		unfinished, err := s.Unfinished()
		require.NoError(t, err)
		for _, m := range append(unfinished, models...) {
			require.GreaterOrEqual(t, s.Arrived(&m.Manifest), arrived, "what has come is kept")
			arrived = s.Arrived(&m.Manifest)
		}
	}
	t.Logf("%d of 20 were done before they were killed", finished)
	last := start()
	require.NoError(t, last.Wait())
	data, err := os.ReadFile(here(dir, "list", "--json").path(t))
	require.NoError(t, err)
	require.True(t, bytes.Equal(mini.GGUF, data))
	require.NoError(t, err)
	o := here(dir, "rm", "Ann/Mini-GGUF", "other")
	require.Equal(t, exitDone, o.code, o.stderr)
	for _, folder := range []string{"blobs", "partial", "pulls", "views", "models"} {
		left, err := os.ReadDir(filepath.Join(dir, folder))
		require.NoError(t, err)
		require.Empty(t, left, folder)
	}
}

// Two processes that pull one model at once fetch each byte once.
func TestPullByTwoProcesses(t *testing.T) {
	h, dir := miniHub(t), filepath.Join(t.TempDir(), "store")
	h.Change(func(s *hubtest.Settings) { s.Slow = 200 * time.Microsecond })
	var both []*exec.Cmd
	for range 2 {
		c := exec.Command(os.Args[0], "-test.run", "^TestPullKilled$")
		c.Env = append(os.Environ(), killedPull+"=pull\n-q\n--endpoint\n"+h.URL+"\nAnn/Mini-GGUF", "SLUICE_STORE="+dir)
		require.NoError(t, c.Start())
		both = append(both, c)
	}
	for _, c := range both {
		require.NoError(t, c.Wait())
	}
	require.EqualValues(t, len(mini.GGUF), h.Sent.Load())
	require.FileExists(t, here(dir, "list", "--json").path(t))
}

// path is that of the first model of a list.
func (o outcome) path(t *testing.T) string {
	t.Helper()
	var list []library.ModelRecord
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &list), o.stderr)
	require.NotEmpty(t, list)
	require.True(t, list[0].Complete, "%+v", list[0])
	return list[0].Path
}

// --pull gets what is not there; without it, the error says how.
func TestRunPulls(t *testing.T) {
	h, dir := miniHub(t), filepath.Join(t.TempDir(), "store")
	words := []string{"run", "-m", "Ann/Mini-GGUF", "What is the capital of France?"}
	o := here(dir, words...)
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "get it with sluice pull Ann/Mini-GGUF")
	require.Zero(t, h.Asked.Load())
	for asked := range 2 {
		e := envtest.InStore(dir, append(words, "--pull")...)
		inner := e.Lookup
		e.Lookup = func(name string) (string, bool) {
			if name == "HF_ENDPOINT" {
				return h.URL, true
			}
			return inner(name)
		}
		require.Equal(t, exitDone, run(e), "%s", e.Stderr)
		require.Equal(t, "The capital of France is Paris.\n", fmt.Sprint(e.Stdout))
		require.Equal(t, asked == 0, fmt.Sprint(e.Stderr) != "", "pulled once")
	}
}
