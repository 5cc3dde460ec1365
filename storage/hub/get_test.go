package hub

import (
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/store"
)

// TestWebPages: a network that wants its guests to log in answers with a page in the hub's place.
func TestWebPages(t *testing.T) {
	page := []byte("\n<!doctype html><title>Welcome to the hotel</title>")
	_, err := parseRepository(page)
	require.ErrorContains(t, err, "a web page came: open the hub in a browser")
	_, err = ParseLayers(page, store.Name{})
	require.ErrorContains(t, err, "a web page came: open the hub in a browser")
	_, err = parseRepository([]byte("{"))
	require.ErrorContains(t, err, "not what its API says: unexpected end")
}

// refusing answers every request with 404, and counts the bodies that are open.
type refusing struct{ open int }

func (r *refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	r.open++
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: r, Request: request}, nil
}

func (r *refusing) Read([]byte) (int, error) { return 0, io.EOF }
func (r *refusing) Close() error             { r.open--; return nil }

// TestRefusedIsClosed: an answer that is an error holds no connection.
func TestRefusedIsClosed(t *testing.T) {
	r, base := &refusing{}, &url.URL{Scheme: "https", Host: "hub.test"}
	h := &session{Client: &Client{}, http: &http.Client{Transport: r}, base: base}
	_, err := h.get(t.Context(), base, "", nil)
	require.ErrorContains(t, err, "404")
	require.Zero(t, r.open)
}
