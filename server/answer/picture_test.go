package answer

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/fetch"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/picture"
)

// TestPicturesArePaidByTheirHeaders: all pictures of an order, by what their headers say.
func TestPicturesArePaidByTheirHeaders(t *testing.T) {
	header := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), make([]byte, 17)...)
	binary.BigEndian.PutUint32(header[16:], 1000)
	binary.BigEndian.PutUint32(header[20:], 500)
	header[24], header[25] = 8, 2
	said, err := picture.Inspect(header)
	require.NoError(t, err)
	part := func(data []byte) chat.Part { return chat.Part{Kind: chat.Image, Picture: &chat.Picture{Data: data}} }
	in := &chat.Input{Messages: []chat.Message{{Parts: []chat.Part{{Text: "a"}, part(header)}},
		{Parts: []chat.Part{part(header), part(nil)}}}}
	require.Equal(t, 2*said.Bytes, pictured(&Order{Prompts: []actors.Request{{Chat: in}, {Text: "b"}}}))
	shown := actors.Request{Text: "b", Shown: []chat.Part{part(header)}}
	require.Equal(t, said.Bytes, pictured(&Order{Prompts: []actors.Request{shown}}))
}

func TestFetchedPicturesAreBounded(t *testing.T) {
	size := 1
	s := &Service{Fetch: func(context.Context, string) ([]byte, error) { return make([]byte, size), nil }}
	get := s.fetching(&exchange.Exchange{Context: t.Context()})
	for range mostFetched {
		data, err := get("https://a/")
		require.NoError(t, err)
		require.Len(t, data, 1)
	}
	_, err := get("https://a/")
	require.ErrorContains(t, err, "more than 8 pictures are to be fetched")
	get, size = s.fetching(&exchange.Exchange{Context: t.Context()}), fetch.Most/2+1
	_, err = get("https://a/")
	require.NoError(t, err)
	_, err = get("https://a/")
	require.ErrorContains(t, err, "have more than 16 MB together")
}

func TestModelsThatSee(t *testing.T) {
	e := Entry{Header: &actors.Header{Settings: &meta.Map{}}, Model: &Model{Habits: chat.Habits{Sees: true}}}
	require.Contains(t, e.Capabilities(), "vision")
	e.Model.Habits.Sees = false
	require.NotContains(t, e.Capabilities(), "vision")
}
