package serve

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// tlsFlags make a server use TLS.
type tlsFlags struct {
	Cert string `name:"tls-cert" placeholder:"FILE" help:"Certificate (PEM), with those above it: connections are encrypted. A new file is taken up within a minute."`
	Key  string `name:"tls-key" placeholder:"FILE" help:"Its private key (PEM)."`
}

// config is the TLS configuration; nil: connections are not encrypted.
func (f *tlsFlags) config(e *env.Env) (*tls.Config, error) {
	switch {
	case f.Cert == "" && f.Key == "":
		return nil, nil //nolint:nilnil // there is none
	case f.Cert == "":
		return nil, env.Usagef("--tls-key is the key of a certificate: give that with --tls-cert")
	case f.Key == "":
		return nil, env.Usagef("--tls-cert needs its private key: give it with --tls-key")
	}
	c := &certificate{certFile: f.Cert, keyFile: f.Key, now: e.Now}
	if _, err := c.get(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get, NextProtos: []string{"http/1.1"}}, nil
}

// certificate is a certificate in files, which are read again when they change.
type certificate struct {
	certFile, keyFile string
	now               func() time.Time

	mu      sync.Mutex
	looked  time.Time
	changed time.Time // modification time of the files that were read
	held    *tls.Certificate
}

// renewal is how long a certificate is used before its files are checked again.
const renewal = time.Minute

// get returns the present certificate. If new files cannot be read, the last one stays in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil && c.now().Sub(c.looked) < renewal {
		return c.held, nil
	}
	c.looked = c.now()
	changed, err := latest(c.certFile, c.keyFile)
	if err == nil && (c.held == nil || !changed.Equal(c.changed)) {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(c.certFile, c.keyFile); err == nil {
			c.held, c.changed = &pair, changed
		}
	}
	if c.held == nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w: want PEM files that belong together", c.certFile, c.keyFile, err)
	}
	return c.held, nil
}

// latest is the latest modification time of some files.
func latest(paths ...string) (at time.Time, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return at, err
		}
		if info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at, nil
}
