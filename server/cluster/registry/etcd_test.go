package registry

import (
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

const patient = time.Minute

// startEtcd starts a server of etcd on a port that was free, with the state of a folder.
func startEtcd(t *testing.T, at, folder string) (stop func()) {
	t.Helper()
	c := exec.Command(testref.Tool(t, "etcd-server", "etcd"), "--data-dir", folder, "--listen-client-urls", "http://"+at,
		"--advertise-client-urls", "http://"+at, "--listen-peer-urls", "http://127.0.0.1:0", "--log-level", "error")
	require.NoError(t, c.Start())
	stop = func() {
		if c.ProcessState == nil {
			_ = c.Process.Kill() // it may have ended
			_ = c.Wait()
		}
	}
	t.Cleanup(stop)
	return stop
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

// TestEtcd asks a real one: who comes is listed, who says nothing any more is not, and all are again after it was away,
// even where it has forgotten all.
func TestEtcd(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts etcd three times, and waits for leases")
	}
	at, state := freePort(t), t.TempDir()
	stop := startEtcd(t, at, filepath.Join(state, "first"))
	member := func(url, name, addr string) *etcd {
		r := opened(t, url, me(name, addr), around(nil, nil)).(*etcd)
		t.Cleanup(r.http.CloseIdleConnections)
		return r
	}
	lists := func(r Registry, want ...string) {
		t.Helper()
		var got []string
		var err error
		require.Eventually(t, func() bool {
			got, err = r.Meet(t.Context())
			return err == nil && len(got) == len(want)
		}, patient, 20*time.Millisecond, "%v %v", got, err)
		require.ElementsMatch(t, want, got)
	}
	a, b := member("etcd://"+at, "a", "h:1"), member("etcd://"+at, "b", "h:2")
	other := member("etcd://"+at+"/else/where", "c", "h:3")
	lists(a, "h:1")
	lists(b, "h:1", "h:2")
	lists(a, "h:1", "h:2")
	lists(other, "h:3")
	require.NoError(t, b.Leave(t.Context()))
	lists(a, "h:1")
	brief := member("etcd://"+at, "d", "h:4")
	brief.life = time.Second // etcd makes it two or three
	lists(brief, "h:1", "h:4")
	lists(a, "h:1", "h:4")
	lists(a, "h:1")
	got, err := brief.Meet(t.Context())
	require.NoError(t, err, "its lease has expired")
	require.Len(t, got, 2)
	moved := member("etcd://"+at, "a", "h:5")
	lists(moved, "h:4", "h:5")

	stop()
	_, err = a.Meet(t.Context())
	require.Error(t, err)
	stop = startEtcd(t, at, filepath.Join(state, "first"))
	lists(other, "h:3")
	stop()
	startEtcd(t, at, filepath.Join(state, "second"))
	lists(other, "h:3")
	lists(moved, "h:5")
	withPasswords(t, at, member)
}

// withPasswords has etcd ask who somebody is. Tokens that it has forgotten are got anew.
func withPasswords(t *testing.T, at string, member func(url, name, addr string) *etcd) {
	root := member("etcd://root:p%40ss@"+at, "r", "h:6")
	for path, ask := range map[string]any{"/v3/auth/user/add": &etcdUser{"root", "p@ss"},
		"/v3/auth/role/add": map[string]string{"name": "root"}} {
		require.NoError(t, root.call(t.Context(), "POST", path, ask, nil))
	}
	require.NoError(t, root.call(t.Context(), "POST", "/v3/auth/user/grant", map[string]string{"user": "root", "role": "root"}, nil))
	require.NoError(t, root.call(t.Context(), "POST", "/v3/auth/enable", map[string]string{}, nil))
	_, err := member("etcd://"+at, "n", "h:7").Meet(t.Context())
	require.ErrorContains(t, err, "it answers 4")
	_, err = member("etcd://root:no@"+at, "n", "h:7").Meet(t.Context())
	require.ErrorContains(t, err, `user "root": it answers 400`)
	got, err := root.Meet(t.Context())
	require.NoError(t, err)
	require.Contains(t, got, "h:6")
	root.head.Set("Authorization", "forgotten")
	_, err = root.Meet(t.Context())
	require.Error(t, err)
	got, err = root.Meet(t.Context())
	require.NoError(t, err)
	require.Contains(t, got, "h:6")
	require.NoError(t, root.Leave(t.Context()))
}
