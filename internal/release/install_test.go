package release

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

// TestInstaller: the script fetches the archive for the machine that it runs on, installs its program, and says where;
// an archive of other bytes, a machine that there is none for, and a server without it leave what was there.
func TestInstaller(t *testing.T) {
	testref.Tool(t, "curl", "curl", "wget")
	archives := map[string][]byte{}
	for _, system := range []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64", "windows-amd64", "windows-arm64"} {
		var made bytes.Buffer
		program := File{Path: "sluice", Data: []byte("#!/bin/sh\necho " + system + "\n"), Mode: 0o755}
		require.NoError(t, Tar(&made, "sluice-1.2.3-"+system+"/", []File{program}, How{At: day}))
		archives["sluice-1.2.3-"+system+".tar.gz"] = made.Bytes()
		archives["sluice-1.2.3-"+system+".zip"] = made.Bytes()
	}
	texts, err := Manifests("1.2.3", func(name string) (string, bool) {
		data, ok := archives[name]
		return fmt.Sprintf("%x", sha256.Sum256(data)), ok
	})
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := archives[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, err := w.Write(data)
		if err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	home, machine := t.TempDir(), t.TempDir()
	install := func(system, processor string, more ...string) (string, error) {
		uname := fmt.Sprintf("#!/bin/sh\n[ $1 = -s ] && echo %s || echo %s\n", system, processor)
		require.NoError(t, os.WriteFile(filepath.Join(machine, "uname"), []byte(uname), 0o700))
		c := exec.Command("sh", append([]string{"-s", "--"}, more...)...)
		c.Stdin = bytes.NewReader(texts["install.sh"])
		c.Env = []string{"HOME=" + home, "PATH=" + machine + ":" + os.Getenv("PATH"), "SLUICE_RELEASE=" + server.URL, "TMPDIR=" + t.TempDir()}
		said, err := c.CombinedOutput()
		left, err2 := os.ReadDir(c.Env[len(c.Env)-1][len("TMPDIR="):])
		require.NoError(t, err2)
		require.Empty(t, left, "temporary files stay behind")
		return string(said), err
	}
	program := filepath.Join(home, ".local/bin/sluice")
	for _, c := range [][3]string{{"Linux", "x86_64", "linux-amd64"}, {"Linux", "aarch64", "linux-arm64"},
		{"Darwin", "arm64", "darwin-arm64"}, {"Darwin", "x86_64", "darwin-amd64"}} {
		said, err := install(c[0], c[1])
		require.NoError(t, err, said)
		require.Contains(t, said, "installed "+program+"\nadd it to your path")
		says, err := exec.Command(program).CombinedOutput()
		require.NoError(t, err)
		require.Equal(t, c[2]+"\n", string(says))
	}
	other := filepath.Join(home, "a folder")
	said, err := install("Linux", "amd64", other)
	require.NoError(t, err, said)
	require.FileExists(t, filepath.Join(other, "sluice"))

	archives["sluice-1.2.3-linux-arm64.tar.gz"] = []byte("other bytes")
	delete(archives, "sluice-1.2.3-linux-amd64.tar.gz")
	for _, c := range [][3]string{{"Linux", "arm64", "is not the archive that was released"}, {"Linux", "x86_64", "could not be fetched"},
		{"Linux", "riscv64", "no archive for riscv64"}, {"MINGW64_NT", "x86_64", "no archive for MINGW64_NT"}} {
		said, err := install(c[0], c[1])
		require.Error(t, err, said)
		require.Contains(t, said, "install.sh: ")
		require.Contains(t, said, c[2])
		says, err := exec.Command(program).CombinedOutput()
		require.NoError(t, err)
		require.Equal(t, "darwin-amd64\n", string(says), "what was installed is there still")
	}
}
