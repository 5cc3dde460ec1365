//go:build unix

package lint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/release"
	"github.com/sluice-ai/sluice/internal/testref"
)

// paris is what README's first command is answered.
const paris = "The capital of France is Paris.\n"

// static builds the program as make dist does those that need nothing, and returns the folder that it lies in alone.
func static(t *testing.T, arch string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(folder, "sluice"), "./cmd/sluice")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return folder
}

// alone runs a program that sees nothing but a folder.
func alone(t *testing.T, folder string, words ...string) (stdout string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Dir, c.Env = "/", []string{}
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: folder}
	var out, faults bytes.Buffer
	c.Stdout, c.Stderr = &out, &faults
	err := c.Run()
	if errors.Is(err, syscall.EPERM) {
		testref.Missing(t, "root", "chroot is for root alone")
	}
	require.NoError(t, err, "%s", faults.String())
	return out.String()
}

// TestBuildsWithoutCgo builds the program as on a machine without a C compiler, and runs it where there is nothing
// else: no libc, no /proc, no /dev, no /tmp.
func TestBuildsWithoutCgo(t *testing.T) {
	program := filepath.Join(static(t, "amd64"), "sluice")
	t.Run("alone", func(t *testing.T) { aloneIn(t, filepath.Dir(program)) })
	t.Run("packaged", func(t *testing.T) { packaged(t, program) })
	t.Run("units", func(t *testing.T) { units(t, program) })
	t.Run("container", func(t *testing.T) { container(t, program) })
}

// packaged: the program that is unpacked from an archive, from a package of Debian's or of rpm, or from the image of a
// container, answers where there is nothing else.
func packaged(t *testing.T, program string) {
	data, err := os.ReadFile(program)
	require.NoError(t, err)
	about := release.Package{Name: "sluice", Version: "1.2.3", Arch: "amd64"}
	how := release.How{At: time.Unix(1e9, 0), Quick: true}
	at := func(path string) []release.File { return []release.File{{Path: path, Data: data, Mode: 0o755}} }
	for _, c := range []struct {
		name, at     string
		pack         func(w io.Writer) error
		tool, unpack string // what a shell does with the file $0
	}{
		{"archive", "/sluice-1.2.3-linux-amd64/sluice",
			func(w io.Writer) error { return release.Tar(w, "sluice-1.2.3-linux-amd64/", at("sluice"), how) }, "tar", "tar -xzf $0"},
		{"deb", "/usr/bin/sluice", func(w io.Writer) error { return release.Deb(w, &about, at("usr/bin/sluice"), how) },
			"dpkg-deb", "dpkg-deb --extract $0 ."},
		{"rpm", "/usr/bin/sluice", func(w io.Writer) error { return release.RPM(w, &about, at("usr/bin/sluice"), how) },
			"rpm", "rpm --install --root $PWD $0"},
		{"image", "/sluice", func(w io.Writer) error { return release.Image(w, "1.2.3", "amd64", data, how) }, "tar",
			"tar -xf $0 && tar -xzf $(grep -o 'Layers.*' manifest.json | grep -o 'blobs/sha256/[0-9a-f]*')"},
	} {
		t.Run(c.name, func(t *testing.T) {
			testref.Tool(t, c.tool, c.tool)
			if c.name == "rpm" && os.Getuid() != 0 {
				testref.Missing(t, "root", "rpm installs for root alone")
			}
			var packed bytes.Buffer
			require.NoError(t, c.pack(&packed))
			file, folder := filepath.Join(t.TempDir(), "packed"), t.TempDir()
			require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o600))
			unpack := exec.Command("sh", "-c", c.unpack, file)
			unpack.Dir = folder
			out, err := unpack.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, paris, alone(t, folder, c.at, "run", "--temp", "0", "What is the capital of France?"))
		})
	}
}

func aloneIn(t *testing.T, folder string) {
	require.Contains(t, alone(t, folder, "/sluice", "--version"), "sluice")
	require.Equal(t, paris, alone(t, folder, "/sluice", "run", "--temp", "0", "What is the capital of France?"))
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1, "it leaves nothing behind")
}

// TestArm64 runs the program for arm64, out of its archive, on a processor that is emulated.
func TestArm64(t *testing.T) {
	if testing.Short() {
		t.Skip("an emulated processor takes its time")
	}
	qemu, err := os.ReadFile(testref.Tool(t, "qemu-user-static", "qemu-aarch64-static"))
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(static(t, "arm64"), "sluice"))
	require.NoError(t, err)
	var packed bytes.Buffer
	require.NoError(t, release.Tar(&packed, "sluice-1.2.3-linux-arm64/", []release.File{{Path: "sluice", Data: data, Mode: 0o755}},
		release.How{At: time.Unix(1e9, 0), Quick: true}))
	folder := t.TempDir()
	unpack := exec.Command(testref.Tool(t, "tar", "tar"), "-xzf", "-")
	unpack.Dir, unpack.Stdin = folder, &packed
	said, err := unpack.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "qemu"), qemu, 0o700))
	require.Equal(t, paris, alone(t, folder, "/qemu", "/sluice-1.2.3-linux-arm64/sluice", "run", "--temp", "0", "What is the capital of France?"))
}

// units: systemd has nothing to say about the units, and starts the service with the first connection, which is
// answered; the service says when it is ready.
func units(t *testing.T, program string) {
	verify := testref.Tool(t, "systemd", "systemd-analyze")
	activate := testref.Tool(t, "systemd", "systemd-socket-activate")
	folder, units := t.TempDir(), []string{}
	for _, name := range []string{"sluice.service", "sluice.socket"} {
		text, err := os.ReadFile(filepath.Join(root, "docs/systemd", name))
		require.NoError(t, err)
		units = append(units, filepath.Join(folder, name))
		text = bytes.ReplaceAll(text, []byte("/usr/local/bin/sluice"), []byte(program))
		require.NoError(t, os.WriteFile(units[len(units)-1], text, 0o600))
	}
	out, err := exec.Command(verify, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))

	heard, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(folder, "notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer heard.Close()
	addr := free(t)
	service := exec.Command(activate, "-l", addr, "-E", "NOTIFY_SOCKET="+filepath.Join(folder, "notify"),
		"-E", "SLUICE_STORE="+folder, program, "serve", "--ctx", "512")
	var said bytes.Buffer
	service.Stdout, service.Stderr = &said, &said
	require.NoError(t, service.Start())
	defer func() {
		require.NoError(t, service.Process.Signal(syscall.SIGTERM))
		require.NoError(t, service.Wait(), "%s", said.String())
	}()
	const body = `{"temperature": 0, "messages": [{"role": "user", "content": "What is the capital of France?"}]}`
	ask := func() (string, error) {
		r, err := http.Post("http://"+addr+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return string(text), err
	}
	answer := ""
	require.Eventually(t, func() bool { // it has to listen first; from then on no connection is lost
		answer, err = ask()
		return err == nil
	}, 2*time.Minute, 20*time.Millisecond)
	require.Contains(t, answer, strings.TrimSpace(paris))
	require.NoError(t, heard.SetReadDeadline(time.Now().Add(time.Minute)))
	b := make([]byte, 1000)
	n, err := heard.Read(b)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(b[:n]), "READY=1\n"), "%s", b[:n])
}

// free is an address at which a program can listen. It is none of 127.0.0.1, whose ports tests that run beside take at
// any moment.
func free(t *testing.T) string {
	t.Helper()
	host := fmt.Sprintf("127.1.%d.%d", os.Getpid()>>8&0xFF, os.Getpid()&0xFF)
	ln, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	return ln.Addr().String()
}

// container does by hand what the container file says of its last step, and checks the rest for what can be
// checked.
func container(t *testing.T, program string) {
	text, err := os.ReadFile(filepath.Join(root, "docs/container/Containerfile"))
	require.NoError(t, err)
	steps := map[string][]string{} // of the last image
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "" || word[0] == '#' {
			continue
		}
		require.Contains(t, []string{"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "ENV", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT",
			"CMD"}, word)
		if word == "FROM" {
			clear(steps)
		}
		steps[word] = append(steps[word], rest)
	}
	require.Equal(t, []string{"scratch"}, steps["FROM"])
	require.Equal(t, []string{"65532:65532"}, steps["USER"])
	require.Equal(t, []string{"/models"}, steps["VOLUME"])
	image := release.Started("1.2.3") // says the same
	require.Equal(t, steps["USER"][0], image.User)
	require.Equal(t, strings.Fields(steps["ENV"][0]), image.Env)
	require.Contains(t, image.Volumes, "/models")
	require.Contains(t, image.ExposedPorts, steps["EXPOSE"][0]+"/tcp")
	words := func(list string) (all []string) {
		require.NoError(t, json.Unmarshal([]byte(list), &all), list)
		return all
	}
	times, check, _ := strings.Cut(steps["HEALTHCHECK"][0], " CMD ")
	require.Equal(t, times, fmt.Sprintf("--interval=%.0fs --timeout=%.0fs --start-period=%.0fm", image.Healthcheck.Interval.Seconds(),
		image.Healthcheck.Timeout.Seconds(), image.Healthcheck.StartPeriod.Minutes()))
	require.Equal(t, words(check), image.Healthcheck.Test[1:])
	require.Equal(t, words(steps["ENTRYPOINT"][0]), image.Entrypoint)
	require.Equal(t, words(steps["CMD"][0]), image.Cmd)

	folder := t.TempDir()
	require.NoError(t, os.Link(program, filepath.Join(folder, "sluice")))
	require.NoError(t, os.Mkdir(filepath.Join(folder, "models"), 0o700))
	if err := os.Chown(filepath.Join(folder, "models"), 65532, 65532); err != nil {
		testref.Missing(t, "root", "what follows is for root alone: %v", err)
	}
	for dir := folder; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) { // others may go there
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	addr := free(t)
	start := func(words ...string) *exec.Cmd {
		c := exec.Command(words[0], words[1:]...)
		c.Dir, c.Env = "/", append(strings.Fields(steps["ENV"][0]), "SLUICE_API_KEY=key")
		c.SysProcAttr = &syscall.SysProcAttr{Chroot: folder, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		return c
	}
	entry := append(words(steps["ENTRYPOINT"][0]), words(steps["CMD"][0])...)
	for i, word := range entry {
		if word == ":8080" {
			entry[i] = addr
		}
	}
	var said bytes.Buffer
	serve := start(entry...)
	serve.Stdout, serve.Stderr = &said, &said
	require.NoError(t, serve.Start())
	defer func() {
		require.NoError(t, serve.Process.Signal(syscall.SIGTERM))
		require.NoError(t, serve.Wait(), "%s", said.String())
	}()
	healthy := append(words(check), "--addr", addr)
	require.Eventually(t, func() bool { return start(healthy...).Run() == nil }, time.Minute, 50*time.Millisecond)
	out, err := start("/sluice", "health", "--addr", "127.0.0.1:1").CombinedOutput()
	require.Error(t, err, "%s", out)
	r, err := http.Get("http://" + addr + "/v1/models")
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, http.StatusUnauthorized, r.StatusCode, "strangers need a key")
}
