package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// certify writes a certificate for 127.0.0.1 that signs itself, and returns a client that trusts it alone.
func certify(t *testing.T, dir string, serial int64) (cert, key string, client *http.Client) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(cert, certPEM, 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certPEM))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return cert, key, &http.Client{Transport: transport}
}

// TestServeTLS: answers, streams too, come over TLS, and who speaks plainly gets none.
func TestServeTLS(t *testing.T) {
	cert, key, client := certify(t, t.TempDir(), 1)
	s := serve(t, "--tls-cert", cert, "--tls-key", key, "--ctx", "256")
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
	client.CloseIdleConnections()
	s.ctrlC()
	require.Equal(t, exitDone, <-s.code)
}

// TestCertificateIsRenewed: a new certificate is taken up, and what is no certificate is not.
func TestCertificateIsRenewed(t *testing.T) {
	dir := t.TempDir()
	cert, key, _ := certify(t, dir, 1)
	now := time.Now()
	c := &certificate{certFile: cert, keyFile: key, now: func() time.Time { return now }}
	serial := func() int64 {
		pair, err := c.get(nil)
		require.NoError(t, err)
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		require.NoError(t, err)
		return leaf.SerialNumber.Int64()
	}
	require.EqualValues(t, 1, serial())
	certify(t, dir, 2)
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(cert, later, later))
	require.EqualValues(t, 1, serial(), "it was looked at just now")
	now = now.Add(renewal)
	require.EqualValues(t, 2, serial())
	require.NoError(t, os.WriteFile(cert, []byte("half a cert"), 0o600))
	now = now.Add(renewal)
	require.EqualValues(t, 2, serial())
	require.NoError(t, os.Remove(cert))
	now = now.Add(renewal)
	require.EqualValues(t, 2, serial())
}
