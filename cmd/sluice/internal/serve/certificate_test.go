package serve

import (
	"crypto/x509"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

// TestCertificateIsRenewed: a new certificate is taken up, and what is no certificate is not.
func TestCertificateIsRenewed(t *testing.T) {
	dir := t.TempDir()
	cert, key, _ := envtest.Certify(t, dir, 1)
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
	envtest.Certify(t, dir, 2)
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
