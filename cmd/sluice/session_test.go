package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

// told runs a command on lines of standard input.
func told(t *testing.T, lines string, line ...string) (stdout, stderr string) {
	t.Helper()
	e := envtest.NewEnv(lines, line...)
	require.Zero(t, run(e), "%s", e.Stderr)
	return fmt.Sprint(e.Stdout), fmt.Sprint(e.Stderr)
}

// A conversation that goes on from a session's file, message by message, says what it says in one process, with every
// type of cache, and reads nothing again.
func TestSessionGoesOn(t *testing.T) {
	messages := []string{
		"Tell me a long story about a fox. " + strings.Repeat("It was a dark night. ", 12), "And then?", "What did the raven say?",
	}
	cached := regexp.MustCompile(`(\d+) of them cached`)
	for _, kv := range []string{"f16", "q8", "tq4"} {
		t.Run(kv, func(t *testing.T) {
			flags := []string{"--temp", "1.2", "--seed", "7", "-n", "60", "--kv", kv, "--device", "cpu"}
			want, _ := told(t, strings.Join(messages, "\n"), append([]string{"chat"}, flags...)...)
			file, got := filepath.Join(t.TempDir(), "talk"), ""
			for i, m := range messages {
				with := append([]string{"chat", "--session", file}, flags...)
				if i > 0 {
					with = append([]string{"chat", "--session", file, "--temp", "1.2"}, flags[4:]...) // its seed is kept
				}
				said, notes := told(t, m+"\n/stats", with...)
				got += said
				found := cached.FindStringSubmatch(notes)
				require.NotNil(t, found, notes)
				if i > 0 {
					require.NotEqual(t, "0", found[1], notes)
				}
			}
			require.Equal(t, want, got)
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		})
	}
}

// What cannot be used is refused, and stays as it is; blocks of other caches are not used, and the talk goes on.
func TestSessionRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk")
	question := "Tell me a story. " + strings.Repeat("It was a dark night. ", 12)
	told(t, question, "run", "--session", file, "--device", "cpu")
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	told(t, "And then?", "run", "--session", file, "--device", "cpu")
	longer, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Greater(t, len(longer), len(good))

	got, notes := told(t, "And then?\n/stats", "chat", "--session", file, "--temp", "0", "--device", "cpu", "--kv", "f32")
	require.NotEmpty(t, got)
	require.Contains(t, notes, "what was computed is not used, and the conversation is read again: the session is of "+
		"another type of KV cache")
	require.Contains(t, notes, "0 of them cached")

	for name, bad := range map[string][]byte{"torn": good[:len(good)-9], "text": []byte("{}"), "none": {}} {
		require.NoError(t, os.WriteFile(file, bad, 0o600))
		for _, command := range []string{"run", "chat"} {
			e := envtest.NewEnv("Hi", command, "--session", file, "--device", "cpu")
			require.NotZero(t, run(e), name)
			require.Contains(t, fmt.Sprint(e.Stderr), "it is no whole session file of this version: name another file")
			now, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, bad, now, name)
		}
	}
	last := len(good) - 20 // in its last block
	changed := append([]byte(nil), good...)
	changed[last]++
	require.NoError(t, os.WriteFile(file, changed, 0o600))
	e := envtest.NewEnv("Hi", "run", "--session", file, "--device", "cpu")
	require.NotZero(t, run(e))
	require.Contains(t, fmt.Sprint(e.Stderr), "the checksum of block")
	for _, line := range [][]string{
		{"run", "--session", file, "--raw", "x"}, {"run", "--session", filepath.Join(file, "x"), "x"},
		{"chat", "--session", file, "--load", file},
	} {
		e := envtest.NewEnv("Hi", line...)
		require.NotZero(t, run(e))
	}
}
