package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/storage/sessionfiles"
)

// startSessions serves the embedded model, with sessions saved in a folder.
func startSessions(t *testing.T, path string) *running {
	f, err := sessionfiles.OpenFolder(path, 64<<20)
	require.NoError(t, err)
	log := &lockedBuffer{}
	r := start(t, Options{APIKeys: []string{"k", "other"}, Sessions: actors.KeepSessions(f, zerolog.New(log))},
		func(c *actors.Config) { c.Kept.Weights, c.Sequences = "mini", 4 })
	return r
}

// by posts with a key.
func (r *running) keyed(t *testing.T, key, path, body string) (int, string) {
	t.Helper()
	q, err := http.NewRequest(http.MethodPost, r.url+path, strings.NewReader(body))
	require.NoError(t, err)
	q.Header.Set("Authorization", "Bearer "+key)
	answer, err := r.http.Do(q)
	require.NoError(t, err)
	return read(t, answer)
}

// number is the number at a path of JSON, as it is written there.
func number(t *testing.T, body, path string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), body)
	for _, key := range strings.Split(path, ".") {
		v = v.(map[string]any)[key]
	}
	return fmt.Sprint(v)
}

// TestSlots saves what a slot computed, restores it in the next process, and erases it, as llama-server's clients do.
func TestSlots(t *testing.T) {
	path := t.TempDir()
	r := startSessions(t, path)
	prompt := strings.Repeat("The sea is wide. ", 40)
	complete := func(r *running, key, more string) (cached, body string) {
		status, body := r.keyed(t, key, "/completion", `{"prompt":"`+prompt+more+`","n_predict":8,"temperature":0,"id_slot":1}`)
		require.Equal(t, 200, status, body)
		require.Equal(t, "1", number(t, body, "id_slot"))
		return number(t, body, "timings.cache_n"), at(t, body, "content")
	}
	cached, first := complete(r, "k", "")
	require.Equal(t, "0", cached)
	status, saved := r.keyed(t, "k", "/slots/1?action=save", `{"filename":"talk.bin"}`)
	require.Equal(t, 200, status, saved)
	require.Equal(t, "1", number(t, saved, "id_slot"))
	require.Equal(t, "talk.bin", at(t, saved, "filename"))
	n := number(t, saved, "n_saved")
	require.NotEqual(t, "0", n)
	require.Contains(t, saved, `"timings":{"save_ms":`)
	files, err := filepath.Glob(filepath.Join(path, "*", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	require.Equal(t, number(t, saved, "n_written"), strconv.FormatInt(info.Size(), 10))

	next := startSessions(t, path)
	status, restored := next.keyed(t, "k", "/slots/3?action=restore", `{"filename":"talk.bin"}`)
	require.Equal(t, 200, status, restored)
	require.Equal(t, n, number(t, restored, "n_restored"))
	require.Equal(t, number(t, saved, "n_written"), number(t, restored, "n_read"))
	require.Contains(t, restored, `"timings":{"restore_ms":`)
	cached, again := complete(next, "k", "")
	require.Equal(t, n, cached, "it is not read again")
	require.Equal(t, first, again)
	status, body := next.keyed(t, "k", "/v1/chat/completions", `{"messages":[{"role":"user","content":"`+prompt+`"}],
		"max_tokens":4,"id_slot":2}`)
	require.Equal(t, 200, status, body)
	status, body = next.keyed(t, "k", "/slots/2?action=save", `{"filename":"chat"}`)
	require.Equal(t, 200, status, body)

	status, body = next.keyed(t, "other", "/slots/0?action=restore", `{"filename":"talk.bin"}`)
	require.Equal(t, 404, status, body)
	cached, _ = complete(next, "other", "")
	require.Equal(t, "0", cached, "it is another client's")
	status, body = next.keyed(t, "other", "/slots/3?action=save", `{"filename":"talk.bin"}`)
	require.Equal(t, 400, status, body)
	require.Contains(t, body, "the slot remembers no text")

	status, body = next.keyed(t, "k", "/slots/1?action=erase", "")
	require.Equal(t, 200, status, body)
	require.Equal(t, n, number(t, body, "n_erased"))
	cached, _ = complete(next, "k", "")
	require.Equal(t, "0", cached, "it was erased")
	status, body = next.keyed(t, "k", "/slots/1?action=erase", `{"filename":"talk.bin"}`)
	require.Equal(t, 200, status, body)
	require.NoFileExists(t, files[0])
	status, body = next.keyed(t, "k", "/slots/1?action=restore", `{"filename":"talk.bin"}`)
	require.Equal(t, 404, status, body)
	status, body = next.keyed(t, "k", "/slots/1?action=erase", `{"filename":"talk.bin"}`)
	require.Equal(t, 404, status, body)
}

// TestSlotsRefused: what cannot be is refused in llama-server's shape, and names no path.
func TestSlotsRefused(t *testing.T) {
	path := t.TempDir()
	r := startSessions(t, path)
	for ask, want := range map[[2]string]string{
		{"/slots/1?action=save", `{}`}:                              "filename is empty",
		{"/slots/1?action=save", `{"filename":"../x"}`}:             "without slashes",
		{"/slots/1?action=save", `{"filename":"a\\b"}`}:             "without slashes",
		{"/slots/1?action=save", `{"filename":".."}`}:               "without slashes",
		{"/slots/1?action=save", `{"filename":"a\u0000"}`}:          "without slashes",
		{"/slots/1?action=save", `{"filename":7}`}:                  "filename",
		{"/slots/1?action=save", `{`}:                               "JSON",
		{"/slots/4?action=save", `{"filename":"x"}`}:                "want a number from 0 to 3",
		{"/slots/-1?action=save", `{"filename":"x"}`}:               "want a number from 0 to 3",
		{"/slots/1/2?action=save", `{"filename":"x"}`}:              "want a number from 0 to 3",
		{"/slots/1?action=burn", `{"filename":"x"}`}:                "want ?action=save, restore or erase",
		{"/slots/1", `{"filename":"x"}`}:                            "action is empty",
		{"/completion", `{"prompt":"a","n_predict":1,"id_slot":4}`}: "id_slot",
	} {
		status, body := r.keyed(t, "k", ask[0], ask[1])
		require.Equal(t, 400, status, "%v %s", ask, body)
		require.Contains(t, body, want, "%v", ask)
		require.Contains(t, body, `"error":{"code":400`)
	}
	status, body := r.post(t, "/slots/1?action=save", `{"filename":"x"}`)
	require.Equal(t, 401, status, body)
	none := start(t, Options{}, nil)
	status, body = none.post(t, "/slots/1?action=save", `{"filename":"x"}`)
	require.Equal(t, 501, status)
	require.JSONEq(t, `{"error":{"code":501,"message":"this server saves no slots: start it with --state DIR, where they `+
		`are kept","type":"not_supported_error"}}`, body)

	prompt := strings.Repeat("The sea is wide. ", 40)
	status, body = r.keyed(t, "k", "/completion", `{"prompt":"`+prompt+`","n_predict":1,"id_slot":0}`)
	require.Equal(t, 200, status, body)
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	status, body = r.keyed(t, "k", "/slots/0?action=save", `{"filename":"x"}`)
	require.Equal(t, 500, status, body)
	require.Contains(t, body, "the session's file cannot be used: not a directory")
	require.NotContains(t, body, path)
	require.NoError(t, os.Remove(path))
	status, body = r.keyed(t, "k", "/slots/0?action=save", `{"filename":"x"}`)
	require.Equal(t, 200, status, body)
}
