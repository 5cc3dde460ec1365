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

// What /save writes has what was computed beside it: a talk that loads it says what it would have said, and reads
// nothing again. Without that file, or with one of other caches, it is read again.
func TestSavedTalkGoesOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk.json")
	flags := []string{"--temp", "0", "-n", "60", "--device", "cpu"}
	story := "Tell me a long story about a fox. " + strings.Repeat("It was a dark night. ", 12)
	want, _ := told(t, story+"\nAnd then?", append([]string{"chat"}, flags...)...)
	begun, notes := told(t, story+"\n/save "+file, append([]string{"chat"}, flags...)...)
	require.Regexp(t, `2 messages saved, and what was computed of [1-9]\d+ tokens`, notes)
	info, err := os.Stat(file + ".session")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	cached := regexp.MustCompile(`(\d+) of them cached`)
	for name, c := range map[string]struct {
		typed, loaded, cached string
		with                  []string
	}{
		"--load": {"And then?\n/stats", `2 messages loaded, and what was computed of [1-9]\d+ tokens`, `^[1-9]`, []string{"--load", file}},
		"/load":  {"/load " + file + "\nAnd then?\n/stats", `and what was computed of [1-9]\d+ tokens`, `^[1-9]`, nil},
		"other caches": {"And then?\n/stats", `what was computed is not used: .*another type of KV cache`, `^0$`,
			[]string{"--load", file, "--kv", "f32"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, notes := told(t, c.typed, append(append([]string{"chat"}, flags...), c.with...)...)
			require.Regexp(t, c.loaded, notes)
			require.Regexp(t, c.cached, cached.FindStringSubmatch(notes)[1], notes)
			if name != "other caches" {
				require.Equal(t, want, begun+got)
			}
		})
	}
	require.NoError(t, os.Remove(file+".session"))
	got, notes := told(t, "And then?\n/stats", append(append([]string{"chat"}, flags...), "--load", file)...)
	require.Equal(t, want, begun+got)
	require.Contains(t, notes, "0 of them cached")
	require.NoError(t, os.WriteFile(file+".session", []byte("mine"), 0o600))
	_, notes = told(t, story+"\n/save "+file+"2", append([]string{"chat"}, flags...)...)
	require.Contains(t, notes, "2 messages saved, and")
	require.NoError(t, os.WriteFile(file+"3.session", []byte("mine"), 0o600))
	_, notes = told(t, story+"\n/save "+file+"3", append([]string{"chat"}, flags...)...)
	require.Contains(t, notes, "what was computed is not: "+file+"3.session: is there already")
	mine, err := os.ReadFile(file + "3.session")
	require.NoError(t, err)
	require.Equal(t, "mine", string(mine))
}
