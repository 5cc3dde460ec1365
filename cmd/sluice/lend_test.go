//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/testref"
)

// TestLayersOverMembers: the embedded model answers in two processes as it does in one, to the bit, and the plan says
// what the network between them allows.
func TestLayersOverMembers(t *testing.T) {
	if testing.Short() {
		t.Skip("a server that lends")
	}
	dir := passes(t, "attic", "desk")
	_, _, stderr := startApart(t, "--name", "m", "--cluster", "home", "--pass", filepath.Join(dir, "attic.pem"),
		"--member-addr", "127.0.0.1:0", "--lend", "4G")
	at := memberAddr(t, stderr)
	over := []string{"--device", "member:" + at, "--pass", filepath.Join(dir, "desk.pem"), "--gpu-layers", "1"}
	args := []string{"run", "--temp", "1", "--seed", "5", "-n", "40", "Once upon a time"}
	want := sluice("", append(args, "--device", "cpu")...)
	require.Equal(t, exitDone, want.code, want.stderr)
	got := sluice("", append(args, over...)...)
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, want.stdout, got.stdout)
	mini := filepath.Join(testref.Dir(t), "models", "mini-Q4_K_M.gguf")
	e, _ := envtest.CachingEnv(t, append([]string{"plan", mini}, over...)...)
	require.Equal(t, exitDone, run(e), fmt.Sprint(e.Stderr))
	require.Contains(t, fmt.Sprint(e.Stdout), "the other member the last 1 and the head")
	require.Regexp(t, `network to member attic \(cpu .+\): \S+ there and back, \d+ MB/s; a token takes .+B of it: at most`,
		fmt.Sprint(e.Stdout))
	for flags, said := range map[string]string{
		"--device member:" + at:                     "--device member needs --pass FILE",
		"--device member:attic":                     `--device names "attic": want member:HOST:PORT`,
		strings.Join(over, " ") + " --fast-prefill": "--fast-prefill is of GPUs",
	} {
		o := sluice("", append([]string{"run", "hello"}, strings.Fields(flags)...)...)
		require.Equal(t, exitUsage, o.code, o.stderr)
		require.Contains(t, o.stderr, said)
	}
}
