package main

import (
	"os"
	"path/filepath"
	"runtime"
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
