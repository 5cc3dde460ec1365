package winetest

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/release"
	"github.com/sluice-ai/sluice/internal/testref"
)

// questions of the embedded model; each has an answer of its own.
const (
	france = "What is the capital of France?"
	paris  = "The capital of France is Paris.\n"
)

// machine is a prefix with the program in C:\sluice, beside the same program for the machine that the test runs on.
type machine struct {
	*Prefix
	folder string // of the program, as Linux names it
	native string
}

// TestUnderWine: the program for Windows, out of a release's zip, answers as that for Linux does, to the token, from
// wherever it has its weights; it serves, is asked, and ends by Ctrl-C.
func TestUnderWine(t *testing.T) {
	if testing.Short() {
		t.Skip("the program is built for another system")
	}
	p, err := Open(filepath.Join(t.TempDir(), "prefix"))
	if err != nil {
		testref.Missing(t, "wine", "%v", err)
	}
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		gone := func() bool { return os.RemoveAll(p.folder) == nil } // Wine's server writes its registry when it ends
		require.Eventually(t, gone, time.Minute, 100*time.Millisecond)
	})
	m := machine{Prefix: p, folder: filepath.Join(p.Folder(), "sluice"), native: filepath.Join(t.TempDir(), "sluice")}
	build(t, m.native, "CGO_ENABLED=0")
	unpacked(t, m.folder)
	weights, err := os.ReadFile("../mini/mini-Q4_K_M.gguf")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(m.folder, "mini.gguf"), weights, 0o600))

	t.Run("starts", func(t *testing.T) {
		require.Contains(t, m.run(t, "", "version"), "sluice")
		require.Contains(t, m.run(t, "", "doctor"), "this system has no io_uring: reads use pread")
	})
	t.Run("answers", m.answers)
	t.Run("streams", m.streams)
	t.Run("keeps", m.keeps)
	t.Run("talks", func(t *testing.T) {
		require.Equal(t, paris+"2 + 3 = 5.\n", m.run(t, france+"\nWhat is 2 + 3?\n", "chat"))
	})
	t.Run("serves", m.serves)
}

// unpacked builds the program for Windows, packs it as a release does, and unpacks it into a folder.
func unpacked(t *testing.T, folder string) {
	program := filepath.Join(t.TempDir(), "sluice.exe")
	build(t, program, "CGO_ENABLED=0", "GOOS=windows", "GOARCH=amd64")
	data, err := os.ReadFile(program)
	require.NoError(t, err)
	var packed bytes.Buffer
	require.NoError(t, release.Zip(&packed, "sluice/", []release.File{{Path: "sluice.exe", Data: data, Mode: 0o755}},
		release.How{At: time.Unix(1e9, 0), Quick: true}))
	z, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(filepath.Dir(folder), z))
}

func build(t *testing.T, program string, environment ...string) {
	t.Helper()
	c := exec.Command("go", "build", "-trimpath", "-o", program, "../../cmd/sluice")
	c.Env = append(os.Environ(), environment...)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// run returns what the program for Windows writes to standard output; it must end well.
func (m machine) run(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	c := m.Command("sluice.exe", args...)
	c.Dir, c.Stdin = m.folder, strings.NewReader(stdin)
	var out, faults bytes.Buffer
	c.Stdout, c.Stderr = &out, &faults
	require.NoError(t, c.Run(), "%s: %s", args, &faults)
	return out.String()
}

// answers: what is likeliest, and what is drawn, is the same on both systems.
func (m machine) answers(t *testing.T) {
	require.Equal(t, paris, m.run(t, "", "run", "--temp", "0", france))
	for _, args := range [][]string{
		{"run", "--temp", "1", "--seed", "7", "Tell me about Paris"},
		{"run", "--temp", "1.5", "--seed", "8", "-n", "64", "func main() {"},
		{"tokenize", "The capital of France is Paris."},
	} {
		c := exec.Command(m.native, args...)
		c.Env = append(os.Environ(), "SLUICE_CONFIG="+os.DevNull)
		want, err := c.Output()
		require.NoError(t, err, "%s", args)
		require.NotEmpty(t, want)
		require.Equal(t, string(want), m.run(t, "", args...), "%s", args)
	}
}

// streams: a file is named by its drive, with any slashes, and read while the program computes.
func (m machine) streams(t *testing.T) {
	for _, path := range []string{`C:\sluice\mini.gguf`, "C:/sluice/mini.gguf", `.\mini.gguf`, "mini.gguf",
		Path(filepath.Join(m.folder, "mini.gguf"))} {
		require.Equal(t, paris, m.run(t, "", "run", "-m", path, "--ram", "10M", "--temp", "0", france), path)
	}
	c := m.Command("sluice.exe", "run", "-m", `C:\sluice\none.gguf`, france)
	c.Dir = m.folder
	out, err := c.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), `C:\sluice\none.gguf`)
}

// keeps: the store lies below LOCALAPPDATA, and a model in it is found by its name. The model is made by the program
// for Linux: Wine 8 cannot remove folders, as making one does at its end.
func (m machine) keeps(t *testing.T) {
	require.Contains(t, m.run(t, "", "list"), `AppData\\Local\\sluice\\store`)
	local, err := filepath.Glob(filepath.Join(m.Folder(), "users", "*", "AppData", "Local"))
	require.NoError(t, err)
	local = slices.DeleteFunc(local, func(folder string) bool { return strings.Contains(folder, "Public") })
	require.Len(t, local, 1)
	c := exec.Command(m.native, "create", "brief", "-f", "-")
	c.Env = append(os.Environ(), "SLUICE_STORE="+filepath.Join(local[0], "sluice", "store"))
	c.Dir, c.Stdin = m.folder, strings.NewReader("FROM ./mini.gguf\nSYSTEM Be brief.\n")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, m.run(t, "", "list"), "brief")
	require.NotEmpty(t, m.run(t, "", "run", "-m", "brief", "--temp", "0", france))
}

// serves: a client of another system is answered, and Ctrl-C ends the server.
func (m machine) serves(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	c := m.Command("sluice.exe", "serve", "--addr", addr)
	c.Dir = m.folder
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	require.NoError(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	body := fmt.Sprintf(`{"temperature": 0, "messages": [{"role": "user", "content": %q}]}`, france)
	var answer struct {
		Choices []struct {
			Message struct{ Content string }
		}
	}
	asked := func() bool {
		r, err := http.Post("http://"+addr+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			return false // it does not listen yet
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return err == nil && r.StatusCode == http.StatusOK && json.Unmarshal(text, &answer) == nil
	}
	require.Eventually(t, asked, time.Minute, 100*time.Millisecond)
	require.Len(t, answer.Choices, 1)
	require.Equal(t, strings.TrimSpace(paris), answer.Choices[0].Message.Content)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	select {
	case err := <-ended:
		require.NoError(t, err, "%s", &said)
	case <-time.After(time.Minute):
		require.NoError(t, c.Process.Kill())
		t.Fatal("Ctrl-C did not end it")
	}
	require.Contains(t, said.String(), "Ctrl-C again cuts them")
}

func TestFailedToCleanUpAlone(t *testing.T) {
	const cleanup = "    testing.go:1464: TempDir RemoveAll cleanup: unlinkat C:\\users\\a\\Temp\\T\\001\\f: Invalid function.\r\n"
	for _, c := range []struct {
		output string
		want   bool
	}{
		{"--- FAIL: TestA (0.00s)\n" + cleanup + "FAIL\n", true},
		{"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n    " + cleanup + "FAIL\n", true},
		{"--- FAIL: TestA (0.00s)\n    a_test.go:7: no\n" + cleanup + "FAIL\n", false},
		{"--- FAIL: TestA (0.00s)\n" + cleanup + "panic: no\n", false},
		{"--- FAIL: TestA (0.00s)\nFAIL\n", false},
	} {
		require.Equal(t, c.want, FailedToCleanUpAlone(c.output), "%s", c.output)
	}
}
