package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

// TestServeTLS: answers, streams too, come over TLS, and who speaks plainly gets none.
func TestServeTLS(t *testing.T) {
	cert, key, client := envtest.Certify(t, t.TempDir(), 1)
	s := launch(t, "--tls-cert", cert, "--tls-key", key, "--ctx", "256")
	require.True(t, strings.HasPrefix(s.url, "https://127.0.0.1:"), s.url)
	for _, stream := range []string{"false", "true"} {
		r, err := client.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(
			`{"temperature": 0, "stream": `+stream+`, "messages": [{"role": "user", "content": "12 + 30"}]}`))
		require.NoError(t, err)
		said, err := io.ReadAll(r.Body)
		r.Body.Close()
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.Contains(t, string(said), map[string]string{"false": "12 + 30 = 42.", "true": "[DONE]"}[stream])
		require.NotNil(t, r.TLS)
		require.GreaterOrEqual(t, r.TLS.Version, uint16(tls.VersionTLS12))
	}
	plain, err := http.Get(strings.Replace(s.url, "https:", "http:", 1) + "/health")
	if err == nil {
		plain.Body.Close()
	}
	require.Error(t, err)
	_, err = http.Get(s.url + "/health")
	require.ErrorContains(t, err, "certificate", "it is not trusted by everybody")
	o := sluice("", "health", "--addr", s.url)
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "vouches for its certificate: name it with --tls-ca FILE")
	require.Equal(t, exitDone, sluice("", "health", "--addr", s.url, "--tls-ca", cert).code)
	require.Contains(t, sluice("", "health", "--addr", s.url, "--tls-ca", key).stderr, "holds no certificate")
	require.Equal(t, exitFailed, sluice("", "health", "--addr", s.url, "--tls-ca", "nothing").code)
	client.CloseIdleConnections()
	s.ctrlC()
	require.Equal(t, exitDone, <-s.code)
}
