package watch

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// remoteFlags say which running server is asked.
type remoteFlags struct {
	Addr   string `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address of the server that is asked, or https://HOST:PORT. Default: 127.0.0.1:8080."`
	APIKey string `name:"api-key" placeholder:"KEY" help:"Key that the server wants, if it wants one. Default: $SLUICE_API_KEY."`
	CA     string `name:"tls-ca" placeholder:"FILE" help:"Certificate (PEM) that vouches for a server of https, besides those that the system knows: the server's own, for instance."`
}

// trusted are the certificates that vouch for a server; nil: those that the system knows.
func (f *remoteFlags) trusted() (*x509.CertPool, error) {
	if f.CA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, env.Usagef("--tls-ca %s: holds no certificate: want a file in PEM format", f.CA)
	}
	return pool, nil
}

// get asks the server for a path. The caller closes the body.
func (f *remoteFlags) get(ctx context.Context, e *env.Env, path string) (io.ReadCloser, error) {
	return f.ask(ctx, e, http.MethodGet, path, nil)
}

func (f *remoteFlags) ask(ctx context.Context, e *env.Env, method, path string, body io.Reader) (io.ReadCloser, error) {
	base := f.Addr
	if !strings.HasPrefix(base, "https://") {
		base = "http://" + base
	}
	request, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return nil, env.Usagef("--addr %q is no address: want HOST:PORT", f.Addr)
	}
	inherited, _ := e.Lookup("SLUICE_API_KEY")
	if key := cmp.Or(f.APIKey, inherited); key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	roots, err := f.trusted()
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: roots}}}
	answer, err := client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err // the rest of it only repeats the address
		}
		if errors.As(err, new(x509.UnknownAuthorityError)) {
			return nil, fmt.Errorf("asking the server at %s: nobody that this system knows vouches for its certificate: "+
				"name it with --tls-ca FILE", f.Addr)
		}
		return nil, fmt.Errorf("asking the server at %s: %w: start one with sluice serve, or name another with --addr", f.Addr, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	var said struct{ Error struct{ Message string } }
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if json.Unmarshal(text, &said) != nil || said.Error.Message == "" {
		said.Error.Message = "it may be another program, or an older sluice"
	}
	return nil, &answered{answer.StatusCode, fmt.Sprintf("the server at %s answers %d to %s %s: %s", f.Addr, answer.StatusCode,
		method, path, said.Error.Message)}
}

// answered is an answer that is none of success.
type answered struct {
	status int
	text   string
}

func (a *answered) Error() string { return a.text }
