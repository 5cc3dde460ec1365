package answer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/server/exchange"
)

// Of an answer with several choices a client comes back for events of one of them, while those that it has of another
// are still to be made again: ids count these.
func TestIDsCountWhatTheClientHas(t *testing.T) {
	r := &run{x: &exchange.Exchange{ID: "a"}, past: &past{seen: []int{6, 4, 0}}, events: events{next: []int{3, 4, 0}}}
	require.Equal(t, "id: a.6-5-0\ndata: x\n\n", string(r.number(nil, 1, []byte("data: x\n\n"))))
	for range 3 {
		require.Empty(t, r.number(nil, 0, []byte("data: y\n\n")))
	}
	require.Equal(t, "id: a.7-5-0\ndata: y\n\n", string(r.number(nil, 0, []byte("data: y\n\n"))))
	seen, ok := ParseSeen("7-5-0")
	require.True(t, ok)
	require.Equal(t, []int{7, 5, 0}, seen)
}
