package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
)

// SessionPath is where a member lends saved sessions, whole: ?model=MODEL&owner=…&name=….
const SessionPath = "/cluster/session"

// ErrNoSession says that no member has a session.
var ErrNoSession = errors.New("no member has it")

// mostSession is more bytes than a saved session may have.
const mostSession = 8 << 30

// Session returns the session of a model, an owner and a name, as a member lends it, and how many bytes that are. All
// that are heard of are asked.
func (c *Cluster) Session(ctx context.Context, model, owner, name string) (from io.ReadCloser, size int64, err error) {
	found := ErrNoSession
	query := url.Values{"model": {model}, "owner": {owner}, "name": {name}}.Encode()
	for _, addr := range c.heard() {
		from, size, err = c.session(ctx, "https://"+addr+SessionPath+"?"+query)
		if err == nil || ctx.Err() != nil {
			return from, size, err
		}
		if !errors.Is(err, ErrNoSession) {
			found = fmt.Errorf("the member at %s: %w", addr, err)
		}
	}
	return nil, 0, found
}

// heard lists the addresses of the members that are heard of.
func (c *Cluster) heard() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, addr := range slices.Sorted(maps.Keys(c.peers)) {
		if c.peers[addr].member != "" {
			all = append(all, addr)
		}
	}
	return all
}

func (c *Cluster) session(ctx context.Context, at string) (from io.ReadCloser, size int64, err error) {
	w := watch(ctx)
	defer func() {
		if err != nil {
			_ = w.Close() // nothing more is wanted of it
		}
	}()
	q, err := http.NewRequestWithContext(w.ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, 0, err
	}
	answer, err := c.Do(q)
	if err != nil {
		return nil, 0, cause(w.ctx, err)
	}
	w.body, size = answer.Body, answer.ContentLength
	switch {
	case answer.StatusCode == http.StatusNotFound:
		err = ErrNoSession
	case answer.StatusCode != http.StatusOK:
		err = fmt.Errorf("it answers %d: %s", answer.StatusCode, saidIn(answer.Body))
	case size < 1 || size > mostSession:
		err = fmt.Errorf("its session has %d bytes: want 1 to %d", size, int64(mostSession))
	}
	return w, size, err
}
