package registry

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	patience   = 2 * time.Second // with a call
	mostAnswer = 4 << 20         // bytes
)

// client calls the HTTP interface of a registry.
type client struct {
	name string // of the registry, without secrets
	base string
	http *http.Client
	head http.Header // of each call
}

// newClient reaches the host of a URL; usual is the port that need not be named. Schemes that end with s have TLS.
func newClient(u *url.URL, usual string, of Surroundings) (*client, error) {
	host, port := u.Hostname(), u.Port()
	if host == "" {
		return nil, fmt.Errorf("it names no host: want such as %s://10.0.0.2:%s", u.Scheme, usual)
	}
	if port == "" {
		port = usual
	}
	query, err := settings(u, "ca", "cert", "key")
	if err != nil {
		return nil, err
	}
	c, scheme := &client{name: shown(u), head: http.Header{}}, "http"
	var config *tls.Config
	if strings.HasSuffix(u.Scheme, "s") {
		scheme = "https"
		if config, err = secure(query, of); err != nil {
			return nil, err
		}
	} else if len(query) > 0 {
		return nil, fmt.Errorf("ca, cert and key are of TLS: want %ss://", u.Scheme)
	}
	c.base = scheme + "://" + net.JoinHostPort(host, port)
	c.http = caller(config)
	return c, nil
}

// caller makes an HTTP client that asks no proxy and follows nobody elsewhere: calls may carry secrets.
func caller(config *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 1,
		IdleConnTimeout: 3 * Beat, TLSHandshakeTimeout: patience},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// secure is TLS as a URL's query has it: whom we believe, and what we show.
func secure(query url.Values, of Surroundings) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := query.Get("ca"); file != "" {
		text, err := of.Read(file)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca: %s has no certificate (PEM)", file)
		}
	}
	cert, key := query.Get("cert"), query.Get("key")
	if cert == "" && key == "" {
		return config, nil
	}
	if cert == "" || key == "" {
		return nil, errors.New("cert and key belong together: name both files")
	}
	first, err := of.Read(cert)
	if err != nil {
		return nil, fmt.Errorf("cert: %w", err)
	}
	second, err := of.Read(key)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	pair, err := tls.X509KeyPair(first, second)
	if err != nil {
		return nil, fmt.Errorf("cert and key: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// refused is an answer of a registry that is none of success.
type refused struct {
	status int
	said   string
}

func (r *refused) Error() string { return fmt.Sprintf("it answers %d: %s", r.status, r.said) }

// call asks for a path, with ask as JSON unless it is nil, and reads the answer's JSON into answer unless that is nil.
func (c *client) call(ctx context.Context, method, path string, ask, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var body io.Reader
	if ask != nil {
		text, err := json.Marshal(ask)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	q, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	q.Header = c.head.Clone()
	if ask != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	got, err := c.http.Do(q)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err // the rest repeats the address
		}
		return err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(io.LimitReader(got.Body, mostAnswer+1))
	switch {
	case err != nil:
		return err
	case got.StatusCode != http.StatusOK:
		return &refused{got.StatusCode, fmt.Sprintf("%.300q", bytes.TrimSpace(text))}
	case len(text) > mostAnswer:
		return fmt.Errorf("it answers with more than %d bytes", mostAnswer)
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("its answer to %s is not the JSON that is known: %w", path, err)
	}
	return nil
}

// String implements Registry.
func (c *client) String() string { return c.name }
