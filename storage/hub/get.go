package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	mostAnswer    = 16 << 20 // bytes of a document
	mostExcuse    = 64 << 10 // bytes that are read of the body of an error
	mostRedirects = 10
	tries         = 6 // failed attempts in a row, none of which brought a byte, after which a pull gives up
	longestWait   = time.Minute
)

// noRedirect makes the HTTP client return redirects as answers: get follows them, and decides whether the token may be
// sent along.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Refused is the error of an HTTP answer whose status is neither 200 nor 206.
type Refused struct {
	Place  string // URL without its query, which may be a secret
	Status int
	Said   string        // the hub's message, or empty
	After  time.Duration // how long to wait before another try (Retry-After); 0: not stated
}

func (r *Refused) Error() string {
	text := fmt.Sprintf("%s answers %d %s", r.Place, r.Status, http.StatusText(r.Status))
	if r.Said != "" {
		text += ": " + r.Said
	}
	return text
}

// again reports whether the same request may succeed later.
func (r *Refused) again() bool {
	switch r.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return r.Status >= 500 && r.Status != http.StatusNotImplemented
}

// place returns a URL without its user and query, which may be secret.
func place(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// sameOrigin reports whether two URLs lead to the same server.
func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// answer is the answer to a request: a response of status 200 or 206, whose body the caller closes.
type answer struct {
	*http.Response
	from   *url.URL      // URL that gave the response, after all redirects
	passed []http.Header // headers of the redirects that led there
}

// get sends a GET and follows redirects. The token is sent to the hub's own origin only, and https never redirects to
// http.
func (h *session) get(ctx context.Context, to *url.URL, token string, header http.Header) (*answer, error) {
	a := &answer{from: to}
	for range mostRedirects {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.from.String(), nil)
		if err != nil {
			return nil, err
		}
		for key, values := range header {
			request.Header[key] = values
		}
		request.Header.Set("User-Agent", h.Agent)
		if token != "" && sameOrigin(a.from, h.base) {
			if a.from.Scheme != "https" && !loopback(a.from) {
				return nil, fmt.Errorf("%s is not secure, and anybody on the way could read the token: want https", place(a.from))
			}
			request.Header.Set("Authorization", "Bearer "+token)
		}
		if proxy, err := http.ProxyFromEnvironment(request); proxy == nil && err == nil {
			request = request.WithContext(context.WithValue(ctx, directKey{}, sameOrigin(a.from, h.base)))
		}
		if a.Response, err = h.http.Do(request); err != nil {
			return nil, unwrapped(ctx, a.from, err)
		}
		switch a.StatusCode {
		case http.StatusOK, http.StatusPartialContent:
			return a, nil
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
			http.StatusPermanentRedirect:
		default:
			defer a.Body.Close()
			return nil, refused(a.from, a.Response, h.clock())
		}
		a.Body.Close()
		a.passed = append(a.passed, a.Header)
		if a.from, err = next(a.from, a.Header.Get("Location")); err != nil {
			return nil, err
		}
		if err = h.bounds.follow(h.base, a.from); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: redirects lead to redirects, more than %d times", place(to), mostRedirects)
}

func (h *session) clock() time.Time {
	if h.now != nil {
		return h.now()
	}
	return time.Now()
}

// next returns the URL that a redirect leads to. It refuses to leave a secure connection, and to log in anywhere.
func next(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	switch {
	case err != nil || location == "" || to.Host == "":
		return nil, fmt.Errorf("%s redirects to %.100q, which is no address", place(from), location)
	case to.Scheme != "https" && (to.Scheme != "http" || from.Scheme == "https"):
		return nil, fmt.Errorf("%s redirects to %s, which is not secure", place(from), place(to))
	case to.User != nil:
		return nil, fmt.Errorf("%s redirects to %s with a user's name, which is not passed on", place(from), place(to))
	}
	return to, nil
}

// loopback reports whether a URL leads to this machine.
func loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// unwrapped returns the cause of ctx's end, else the error of a request as a lost. It removes Go's url.Error, whose
// text shows the query.
func unwrapped(ctx context.Context, to *url.URL, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	if near := (*tooNear)(nil); errors.As(err, &near) {
		return near
	}
	return &lost{place(to), err}
}

// lost is the error of a connection that failed. Another try may succeed.
type lost struct {
	place string
	err   error
}

func (l *lost) Error() string { return l.place + ": " + l.err.Error() }
func (l *lost) Unwrap() error { return l.err }

// refused makes the error of an answer with another status than 200 or 206.
func refused(from *url.URL, response *http.Response, now time.Time) error {
	r := &Refused{Place: place(from), Status: response.StatusCode}
	after := response.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(after, 10, 16); err == nil {
		r.After = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		r.After = max(at.Sub(now), 0)
	}
	data, _ := io.ReadAll(io.LimitReader(response.Body, mostExcuse))
	r.Said = response.Header.Get("X-Error-Message")
	if r.Said == "" {
		r.Said = excuse(data)
	}
	if len(r.Said) > 300 {
		r.Said = strings.ToValidUTF8(r.Said[:300], "") + "…"
	}
	return r
}

// excuse extracts the message from the JSON of a hub's error: {"error": "…"}, or {"errors": [{"message": "…"}]}.
func excuse(data []byte) string {
	var said struct {
		Error  string
		Errors []struct{ Message string }
	}
	if json.Unmarshal(data, &said) != nil {
		return ""
	}
	if said.Error == "" && len(said.Errors) > 0 {
		return said.Errors[0].Message
	}
	return said.Error
}

// document fetches the hub's description of a model, of at most mostAnswer bytes.
func (h *session) document(ctx context.Context, from *url.URL, token, accept string) ([]byte, error) {
	for failures := 1; ; failures++ {
		data, err := h.read(ctx, from, token, accept)
		if err == nil || failures == tries || !temporary(err) {
			return data, err
		}
		if err := h.pause(ctx, failures, err); err != nil {
			return nil, err
		}
	}
}

// slowest bounds the time for a whole document, as a multiple of session.patience: a hub that keeps sending a few
// bytes must not keep a pull waiting forever.
const slowest = 10

func (h *session) read(ctx context.Context, from *url.URL, token, accept string) ([]byte, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	idle := stalls(from, h.patience, stop)
	defer idle.Stop()
	whole := time.AfterFunc(slowest*h.patience, func() {
		stop(&lost{place(from), fmt.Errorf("the answer is not there after %v", slowest*h.patience)})
	})
	defer whole.Stop()
	a, err := h.get(ctx, from, token, http.Header{"Accept": {accept}})
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	data, err := io.ReadAll(io.LimitReader(&lively{a.Body, idle, h.patience}, mostAnswer+1))
	switch {
	case err != nil:
		return nil, unwrapped(ctx, a.from, err)
	case len(data) > mostAnswer:
		return nil, fmt.Errorf("%s: sends more than %d bytes, which is the most that is read of such an answer", place(from),
			mostAnswer)
	}
	return data, nil
}

// stalls returns a timer that stops a request if no byte arrives for the time of patience. A lively resets it.
func stalls(from *url.URL, patience time.Duration, stop context.CancelCauseFunc) *time.Timer {
	return time.AfterFunc(patience, func() {
		stop(&lost{place(from), fmt.Errorf("nothing has come for %v", patience)})
	})
}

// lively is a reader that resets the timer of stalls whenever bytes arrive.
type lively struct {
	io.Reader
	idle     *time.Timer
	patience time.Duration
}

func (l *lively) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if n > 0 {
		l.idle.Reset(l.patience)
	}
	return n, err
}

// temporary reports whether another try may succeed.
func temporary(err error) bool {
	var r *Refused
	if errors.As(err, &r) {
		return r.again()
	}
	var l *lost
	return errors.As(err, &l) || errors.Is(err, io.ErrUnexpectedEOF)
}

// pause waits before another try: longer each time, or as long as the hub asks.
func (h *session) pause(ctx context.Context, failures int, err error) error {
	d := time.Second << min(failures-1, 5)
	if r := (*Refused)(nil); errors.As(err, &r) {
		d = max(d, r.After)
	}
	d = min(d, longestWait)
	host, why := h.why(err)
	h.waits(Wait{Host: host, Failed: why, Pause: d, Try: failures + 1, Tries: tries})
	if h.wait != nil {
		return h.wait(ctx, d)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// why returns the host that failed, and how, in as few words as a line of a screen has room for.
func (h *session) why(err error) (host, failed string) {
	host, failed = h.base.Host, err.Error()
	at := ""
	r, l := (*Refused)(nil), (*lost)(nil)
	switch {
	case errors.As(err, &r):
		at, failed = r.Place, fmt.Sprintf("answers %d %s", r.Status, http.StatusText(r.Status))
	case errors.As(err, &l):
		at, failed = l.place, l.err.Error()
	}
	if u, err := url.Parse(at); err == nil && at != "" {
		host = u.Host
	}
	return host, failed
}
