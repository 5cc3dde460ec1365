package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/pass"
)

// TestClusterCert: an authority is made once, in files that others cannot read, and vouches for each member.
func TestClusterCert(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	run := func(code int, want string, args ...string) {
		t.Helper()
		o := sluice("", append([]string{"cluster", "cert", "-o", dir}, args...)...)
		require.Equal(t, code, o.code, o.stderr)
		require.Contains(t, o.stdout+o.stderr, want)
	}
	run(exitUsage, "name the cluster whose authority is to be made with --cluster NAME", "desk")
	run(exitUsage, `member "Desk": want a name of 1 to 40 small letters`, "--cluster", "home", "attic", "Desk")
	run(exitUsage, `cluster "a.b": want a name`, "--cluster", "a.b", "desk")
	run(exitUsage, "a member cannot be called authority", "--cluster", "home", "authority")
	run(exitUsage, "--days is 0", "--cluster", "home", "desk", "--days", "0")
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist, "nothing was written")
	run(exitDone, "authority.pem is the authority of cluster home, until ", "--cluster", "home", "desk", "attic")
	first, err := os.ReadFile(filepath.Join(dir, "authority.pem"))
	require.NoError(t, err)
	run(exitDone, "garage.pem is the pass of garage in cluster home, until ", "garage", "--days", "2")
	run(exitUsage, "desk.pem is there already", "new", "desk")
	_, err = os.Stat(filepath.Join(dir, "new.pem"))
	require.ErrorIs(t, err, os.ErrNotExist)
	run(exitDone, "desk.pem is the pass", "desk", "--force", "--cluster", "home")
	run(exitUsage, `is the authority of cluster "home", not of "office"`, "--cluster", "office", "cellar")
	again, err := os.ReadFile(filepath.Join(dir, "authority.pem"))
	require.NoError(t, err)
	require.Equal(t, first, again)
	now := envtest.NewEnv("").Now
	for name, days := range map[string]int{"desk": 365, "attic": 365, "garage": 2} {
		path := filepath.Join(dir, name+".pem")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		p, err := pass.Parse(text, now)
		require.NoError(t, err)
		require.Equal(t, "home "+name, p.Cluster+" "+p.Member)
		require.WithinDuration(t, now().Add(time.Duration(days)*24*time.Hour), p.Expires, time.Minute)
	}
	for _, name := range []string{"authority", "desk", "garage"} {
		info, err := os.Stat(filepath.Join(dir, name+".pem"))
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "authority.pem"), again[:100], 0o600))
	run(exitFailed, "authority.pem: it lacks a private key or a certificate", "cellar")
}

// TestClusterShow: any member is asked for all, and what is wrong with whom is said.
func TestClusterShow(t *testing.T) {
	said := `{"cluster":"home","members":[{"member":"desk","addr":"10.0.0.1:7","self":true,"models":["chat","small"],` +
		`"unloaded":["x","y"]},{"member":"attic","addr":"10.0.0.2:7","drained":true,"models":["chat"],"heard_ms":120},` +
		`{"addr":"h:1","fault":"no route\u001b[1m"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		require.Equal(t, "/cluster", q.URL.Path)
		_, _ = io.WriteString(out, said) // who asked may be gone
	}))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://")
	o := sluice("", "cluster", "--addr", at)
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Equal(t, "cluster home  for members  heard              models\n"+
		"desk          10.0.0.1:7   it is asked        chat, small; 2 unloaded\n"+
		"attic         10.0.0.2:7   120ms ago          chat; takes nothing new\n"+
		"nobody        h:1          never, or no more  no route\\x1b[1m\n", o.stdout)
	o = sluice("", "cluster", "show", "--json", "--addr", at)
	require.Equal(t, exitDone, o.code, o.stderr)
	require.JSONEq(t, said, o.stdout)
	said = "<html>"
	o = sluice("", "cluster", "--addr", at)
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "tells what is no list of members")
	o = sluice("", "cluster", "--addr", launch(t).url[len("http://"):])
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "is no member of a cluster: start it with serve --cluster")
}
