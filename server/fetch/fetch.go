package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// Limits of a picture that is fetched.
const (
	Most         = 16 << 20 // bytes
	mostWait     = 15 * time.Second
	mostStep     = 5 * time.Second // to connect, to agree on keys, to begin an answer
	mostHeaders  = 16 << 10
	mostRedirect = 3
)

// Fetcher gets pictures. Any number of goroutines may use one.
type Fetcher struct{ client *http.Client }

// New makes a fetcher of what is public.
func New() *Fetcher { return fetcher(public, mostWait) }

// fetcher makes a fetcher that connects to addresses for which may is true.
func fetcher(may func(netip.Addr) bool, wait time.Duration) *Fetcher {
	dialer := &net.Dialer{Timeout: mostStep, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !may(to.Addr()) {
			return errPrivate
		}
		return nil
	}}
	transport := &http.Transport{ // without a proxy: it would connect for us
		DialContext: dialer.DialContext, TLSHandshakeTimeout: mostStep, ResponseHeaderTimeout: mostStep,
		MaxResponseHeaderBytes: mostHeaders, DisableKeepAlives: true, DisableCompression: true,
	}
	return &Fetcher{&http.Client{Transport: transport, Timeout: wait, CheckRedirect: follows}}
}

// Errors, as clients are told them. They name nothing that was asked for, or found.
var (
	errPrivate = errors.New("the picture's address is not one of the public internet: send the picture itself")
	errAddress = errors.New("the picture's address cannot be used: want http:// or https:// without a name and a password")
	errMoved   = fmt.Errorf("the picture's address leads on more than %d times", mostRedirect)
	errFailed  = errors.New("the picture could not be fetched")
	errLate    = errors.New("the picture did not arrive in time")
	errLarge   = fmt.Errorf("the picture has more than %d MB", Most>>20)
)

// follows checks where a redirect leads to, and keeps from it where it came from.
func follows(to *http.Request, via []*http.Request) error {
	if len(via) > mostRedirect {
		return errMoved
	}
	to.Header.Del("Referer")
	return usable(to.URL)
}

func usable(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Host == "" {
		return errAddress
	}
	return nil
}

// Get returns what an address has. Its errors are for the client.
func (f *Fetcher) Get(ctx context.Context, address string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil || usable(u) != nil {
		return nil, errAddress
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, errAddress
	}
	q.Header.Set("User-Agent", "sluice")
	q.Header.Set("Accept", "image/png, image/jpeg, image/webp, image/gif")
	answer, err := f.client.Do(q)
	if err != nil {
		return nil, told(err)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%w: the answer has status %d", errFailed, answer.StatusCode)
	case answer.ContentLength > Most:
		return nil, errLarge
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, Most+1))
	switch {
	case err != nil:
		return nil, told(err)
	case len(data) > Most:
		return nil, errLarge
	}
	return data, nil
}

// told is what a client may hear of an error.
func told(err error) error {
	for _, own := range []error{errPrivate, errAddress, errMoved} {
		if errors.Is(err, own) {
			return own
		}
	}
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return errLate
	}
	return errFailed
}

// special are the networks that are no one's on the public internet, beside those that netip knows: of operators,
// examples, tests, and forms of IPv6 with an address of IPv4 inside.
var special = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23",
	"2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10")

func prefixes(all ...string) (list []netip.Prefix) {
	for _, p := range all {
		list = append(list, netip.MustParsePrefix(p))
	}
	return list
}

// public says whether an address is one of the public internet.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Zone() != "" {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
