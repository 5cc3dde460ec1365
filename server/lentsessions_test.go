package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/cluster"
	"github.com/sluice-ai/sluice/storage/sealed/sealedtest"
	"github.com/sluice-ai/sluice/storage/sessionfiles"
)

// TestSessionsMove: a session that is saved at a member is restored at another one, whatever keys their folders have,
// and by its client alone. Its file does not stay there.
func TestSessionsMove(t *testing.T) {
	w := newTown(t)
	w.edit = func(member string, c *actors.Config) { c.Kept.Key = sealedtest.Key(t, member) }
	join := func(name string) (*joined, *sessionfiles.Folder) {
		f, err := sessionfiles.OpenFolder(t.TempDir(), 64<<20)
		require.NoError(t, err)
		f.Encrypt(sealedtest.Key(t, name))
		return w.join(t, name, Options{APIKeys: []string{"k", "other"},
			Sessions: actors.KeepSessions(f, zerolog.New(&lockedBuffer{}))}), f
	}
	a, saved := join("a")
	b, none := join("b")
	b.sees(t, "a")
	a.sees(t, "b")
	prompt := strings.Repeat("The sea is wide. ", 40)
	status, said := a.keyed(t, "k", "/completion", `{"prompt":"`+prompt+`","n_predict":8,"temperature":0,"id_slot":1}`)
	require.Equal(t, http.StatusOK, status, said)
	want := at(t, said, "content")
	status, said = a.keyed(t, "k", "/slots/1?action=save", `{"filename":"trip"}`)
	require.Equal(t, http.StatusOK, status, said)
	tokens := number(t, said, "n_saved")
	require.NotEqual(t, "0", tokens)

	status, said = b.keyed(t, "other", "/slots/2?action=restore", `{"filename":"trip"}`)
	require.Equal(t, http.StatusNotFound, status, said)
	status, said = b.keyed(t, "k", "/slots/2?action=restore", `{"filename":"trap"}`)
	require.Equal(t, http.StatusNotFound, status, said)
	status, said = b.keyed(t, "k", "/slots/2?action=restore", `{"filename":"trip"}`)
	require.Equal(t, http.StatusOK, status, said)
	require.Equal(t, tokens, number(t, said, "n_restored"))
	require.Zero(t, none.Used())
	require.Positive(t, saved.Used())
	b.cluster.Failed(a.at) // b is to answer itself
	status, said = b.keyed(t, "k", "/completion", `{"prompt":"`+prompt+`","n_predict":8,"temperature":0,"id_slot":2}`)
	require.Equal(t, http.StatusOK, status, said)
	require.Equal(t, want, at(t, said, "content"))
	require.Equal(t, tokens, number(t, said, "timings.cache_n"), said)

	q := url.Values{"model": {"m"}, "owner": {""}, "name": {"trip"}}.Encode()
	got, err := a.http.Get(a.url + cluster.SessionPath + "?" + q) // a client
	require.NoError(t, err)
	status, _ = read(t, got)
	require.Equal(t, http.StatusNotFound, status)
}
