package envtest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/storage/store"
)

// NewEnv is an env without access to anything outside: no variables, an empty machine, no terminal.
func NewEnv(stdin string, args ...string) *env.Env {
	return &env.Env{
		Args:          args,
		Stdin:         strings.NewReader(stdin),
		Stdout:        new(bytes.Buffer),
		Stderr:        new(bytes.Buffer),
		Lookup:        func(string) (string, bool) { return "", false },
		Root:          fstest.MapFS{},
		Now:           func() time.Time { return time.Date(2026, 11, 20, 12, 34, 56, 0, time.UTC) },
		Interruptible: context.WithCancel,
		Terminable:    context.WithCancel,
		Serving: func(parent context.Context) (context.Context, <-chan os.Signal, context.CancelFunc) {
			ctx, cancel := context.WithCancel(parent)
			return ctx, nil, cancel
		},
		IsTerminal: func(any) bool { return false },
		HasText:    func(io.Reader) bool { return stdin != "" },
		Columns:    func(any) int { return env.UsualColumns },
		Rows:       func(any) int { return env.UsualRows },
	}
}

// WithStore is an env whose store lies in a folder of the test.
func WithStore(t *testing.T, args ...string) (*env.Env, *store.Store) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := store.Open(dir)
	require.NoError(t, err)
	return InStore(dir, args...), s
}

func InStore(dir string, args ...string) *env.Env {
	e := NewEnv("", args...)
	e.Lookup = func(name string) (string, bool) {
		if name == "SLUICE_STORE" {
			return dir, true
		}
		return "", false
	}
	return e
}

// KeepMini puts the embedded model into a store under a whole name.
func KeepMini(t *testing.T, s *store.Store, name string) {
	t.Helper()
	ctx, sum := context.Background(), sha256.Sum256(mini.GGUF)
	f := store.File{Role: store.Weights, Name: "mini.gguf", Size: int64(len(mini.GGUF)),
		Digest: store.Digest("sha256:" + hex.EncodeToString(sum[:]))}
	p, err := s.Begin(ctx, store.Manifest{Name: name, Files: []store.File{f}})
	require.NoError(t, err)
	defer p.Close()
	part, err := p.Partial(ctx, f, nil)
	require.NoError(t, err)
	if part != nil {
		require.NoError(t, part.Write(mini.GGUF, 0))
		for i := range part.Pieces() {
			require.NoError(t, part.Done(i))
		}
		require.NoError(t, part.Commit())
	}
	require.NoError(t, p.Commit(ctx))
}

// Certify writes a certificate for 127.0.0.1 that signs itself, and returns a client that trusts it alone.
func Certify(t *testing.T, dir string, serial int64) (cert, key string, client *http.Client) {
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

// CachingEnv is an env that keeps measurements in a folder of the test; path is their file.
func CachingEnv(t *testing.T, args ...string) (e *env.Env, path string) {
	folder := t.TempDir()
	e = NewEnv("", args...)
	e.Lookup = func(name string) (string, bool) {
		value, ok := map[string]string{"XDG_CACHE_HOME": folder}[name]
		return value, ok
	}
	return e, filepath.Join(folder, "sluice", "speeds.json")
}
