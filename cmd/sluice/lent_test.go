//go:build unix

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/mini"
)

// TestModelOfAMember: a member starts with a model that another one runs, and keeps it: the next time it needs nobody.
func TestModelOfAMember(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers")
	}
	dir := passes(t, "a", "b")
	t.Setenv("SLUICE_STORE", filepath.Join(dir, "store"))
	defer http.DefaultClient.CloseIdleConnections()
	flags := func(name string, more ...string) []string {
		return append([]string{"--cluster", "home", "--pass", filepath.Join(dir, name+".pem"), "--member-addr", "127.0.0.1:0",
			"--log", "info"}, more...)
	}
	one, a, stderr := startApart(t, flags("a", "--name", "m")...)
	at := memberAddr(t, stderr)
	_, want := askedMember(t, one)
	two, b, said := startApart(t, flags("b", "--join", at, "-m", "m=member://a/m")...)
	_, text := askedMember(t, two)
	require.Equal(t, want, text)
	folder := filepath.Join(dir, "store", "members", "a.member", "m.model")
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(folder, "unfinished"))
		return os.IsNotExist(err)
	}, time.Minute, 5*time.Millisecond, "%s", said)
	got, err := os.ReadFile(filepath.Join(folder, "m.gguf"))
	require.NoError(t, err)
	require.Equal(t, mini.GGUF, got)
	kill(b, syscall.SIGTERM)
	kill(a, syscall.SIGKILL)
	two, _, said = startApart(t, flags("b", "--join", at, "-m", "m=member://a/m")...)
	_, text = askedMember(t, two)
	require.Equal(t, want, text)
	require.Contains(t, fmt.Sprint(said), "the model is taken as it was brought before")

	for flags, want := range map[string]string{
		"member://a/m": "name the cluster with --cluster", "member://a": "want member://MEMBER/MODEL",
	} {
		o := sluice("", "serve", "--addr", "127.0.0.1:0", "-m", flags)
		require.Equal(t, exitUsage, o.code, o.stderr)
		require.Contains(t, o.stderr, want)
	}
	o := sluice("", "run", "--mirror", "member://a/m", "-n", "1", "hi")
	require.Equal(t, exitUsage, o.code, o.stderr)
	require.Contains(t, o.stderr, "that needs sluice serve --cluster")
}
