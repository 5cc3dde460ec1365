package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// Store holds the models that clients may change. Its methods are safe for concurrent use. Names are names in the
// store, never paths. Errors that the client can correct are Refusals.
type Store interface {
	// Known returns the name under which the store's model of that name is served.
	Known(name string) string
	Pull(ctx context.Context, name string, tell func(Progress)) error
	Create(ctx context.Context, c *Creation, tell func(Progress)) error
	Copy(ctx context.Context, from, to string) error
	Remove(ctx context.Context, name string) error
	// Has reports whether the store has the file of a digest.
	Has(digest string) (bool, error)
	// Receive stores an uploaded file under its digest. size is in bytes, -1 if it is unknown.
	Receive(ctx context.Context, digest string, size int64, from io.Reader) error
}

// Refusal is an error with the HTTP status that the client is told.
type Refusal struct {
	Status int
	Err    error
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// Progress is a line of a stream that reports how far a pull or a creation is.
type Progress struct {
	Status    string `json:"status"`
	Digest    string `json:"digest,omitempty"`
	Total     int64  `json:"total,omitempty"` // bytes
	Completed int64  `json:"completed,omitempty"`
}

// jobs bounds the pulls, creations and uploads at a time; jobsOfOne, those of one client.
const jobs, jobsOfOne = 8, 6

// changes serves the endpoints that change the store, or refuses them.
type changes struct {
	*api
	store Store // nil: clients may change nothing

	mu      sync.Mutex
	running map[string]int // jobs by client
	jobs    int
}

func (c *changes) routes() []answer.Route {
	const post = fasthttp.MethodPost
	all := []answer.Route{
		{Method: post, Path: "/api/pull", Private: true, Handle: c.pull},
		{Method: post, Path: "/api/create", Private: true, Handle: c.create},
		{Method: post, Path: "/api/copy", Private: true, Handle: c.copy},
		{Method: fasthttp.MethodDelete, Path: "/api/delete", Private: true, Handle: c.remove},
		{Path: blobs, Name: blobs + "{digest}", Private: true, Handle: c.blob},
	}
	if c.store == nil {
		for i := range all {
			if all[i].Path != blobs {
				all[i].Method = ""
				all[i].Handle = closed(strings.TrimPrefix(all[i].Path, "/api/"))
			}
		}
	}
	return append(all, answer.Route{Path: "/api/push", Handle: refusePush})
}

// blobs is the path before the digest of an uploaded file, of which models are made.
const blobs = "/api/blobs/"

func closed(verb string) func(*fasthttp.RequestCtx, *exchange.Exchange) *wire.Fault {
	return func(*fasthttp.RequestCtx, *exchange.Exchange) *wire.Fault {
		return wire.Refused(fasthttp.StatusForbidden, "store_closed",
			"%s changes the store of models, which clients may not do here: start the server with --allow-store", verb)
	}
}

func refusePush(*fasthttp.RequestCtx, *exchange.Exchange) *wire.Fault {
	return wire.Refused(fasthttp.StatusNotImplemented, "not_implemented", "push is not possible: models are only pulled")
}

// told returns the fault that the client is told for an error of the store.
func told(x *exchange.Exchange, err error) *wire.Fault {
	var r *Refusal
	switch {
	case errors.As(err, &r):
		return wire.Refused(r.Status, "store", "%s", wire.Told(err))
	case errors.Is(context.Cause(x.Context), exchange.ErrStopping):
		return wire.Stopping()
	case x.Context.Err() != nil:
		return wire.Gone()
	}
	x.Log.Error().Err(err).Msg("the store failed a request")
	return wire.Refused(fasthttp.StatusInternalServerError, "store_failed", "%s", wire.Told(err))
}

// enter takes a place among the jobs for a client; leave gives it back.
func (c *changes) enter(client string) *wire.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.jobs == jobs:
		return wire.Unavailable("overloaded", "%d changes of the store are under way already: try again later", jobs)
	case c.running[client] == jobsOfOne:
		return wire.Unavailable("overloaded", "%d changes of the store that you asked for are under way already: "+
			"try again later", jobsOfOne)
	}
	c.running[client]++
	c.jobs++
	return nil
}

func (c *changes) leave(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs--
	if c.running[client]--; c.running[client] == 0 {
		delete(c.running, client)
	}
}

// pull serves POST /api/pull.
func (c *changes) pull(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := c.Body(rc, x)
	if fault != nil {
		return fault
	}
	f, name, stream := wire.ReadFields(body.Text, body.Budget), "", true
	f.Text("name", &name) // as older clients say
	f.Text("model", &name)
	f.Flag("stream", &stream)
	f.Flag("insecure", new(bool)) // where models come from is said when the server starts
	if fault := named(f, "model", name); fault != nil {
		return fault
	}
	return c.work(rc, x, stream, func(tell func(Progress)) error {
		tell(Progress{Status: "pulling manifest"})
		return c.store.Pull(x.Context, name, tell)
	})
}

// named returns the fault of a missing name; an earlier fault comes first.
func named(f *wire.Fields, field, name string) *wire.Fault {
	if f.Fault == nil && name == "" {
		return wire.Invalid(field, "missing_required_parameter", "%s is missing: want the name of a model", field)
	}
	return f.Fault
}

// copy serves POST /api/copy.
func (c *changes) copy(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := c.Body(rc, x)
	if fault != nil {
		return fault
	}
	f, from, to := wire.ReadFields(body.Text, body.Budget), "", ""
	f.Text("source", &from)
	f.Text("destination", &to)
	if fault := named(f, "source", from); fault != nil {
		return fault
	}
	if fault := named(f, "destination", to); fault != nil {
		return fault
	}
	x.Release()
	if err := c.store.Copy(x.Context, from, to); err != nil {
		return told(x, err)
	}
	return nil
}

// remove serves DELETE /api/delete.
func (c *changes) remove(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := c.Body(rc, x)
	if fault != nil {
		return fault
	}
	f, name := wire.ReadFields(body.Text, body.Budget), ""
	f.Text("name", &name)
	f.Text("model", &name)
	if fault := named(f, "model", name); fault != nil {
		return fault
	}
	x.Release()
	if err := c.store.Remove(x.Context, name); err != nil {
		return told(x, err)
	}
	return nil
}

// blob serves HEAD and POST /api/blobs/DIGEST.
func (c *changes) blob(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	digest := strings.TrimPrefix(string(rc.Path()), blobs)
	switch method := string(rc.Method()); {
	case method == fasthttp.MethodPost && c.store == nil:
		return closed("an upload")(rc, x)
	case method == fasthttp.MethodPost:
		return c.receive(rc, x, digest)
	case method != fasthttp.MethodHead:
		rc.Response.Header.Set("Allow", "HEAD, POST")
		return wire.Refused(fasthttp.StatusMethodNotAllowed, "method_not_allowed", "%.20s is not possible here: use HEAD or POST",
			method)
	case c.store == nil:
		return wire.Refused(fasthttp.StatusNotFound, "not_found", "there is no such file")
	}
	has, err := c.store.Has(digest)
	if err != nil {
		return told(x, err)
	}
	if !has {
		return wire.Refused(fasthttp.StatusNotFound, "not_found", "there is no such file: send it with POST")
	}
	return nil
}

func (c *changes) receive(rc *fasthttp.RequestCtx, x *exchange.Exchange, digest string) *wire.Fault {
	if fault := c.enter(x.Client); fault != nil {
		return fault
	}
	defer c.leave(x.Client)
	body, done := x.Incoming(rc, patience)
	defer done()
	if err := c.store.Receive(x.Context, digest, int64(rc.Request.Header.ContentLength()), body); err != nil {
		return told(x, err)
	}
	rc.SetStatusCode(fasthttp.StatusCreated)
	return nil
}

// patience is how long an upload may take for as many bytes as exchange wants in that time.
const patience = 30 * time.Second

// work runs a job and reports its progress: in lines if stream is set, else at its end alone.
func (c *changes) work(rc *fasthttp.RequestCtx, x *exchange.Exchange, stream bool,
	do func(tell func(Progress)) error) *wire.Fault {
	x.Watch()
	x.Release()
	if fault := c.enter(x.Client); fault != nil {
		return fault
	}
	if !stream {
		defer c.leave(x.Client)
		if err := do(func(Progress) {}); err != nil {
			return told(x, err)
		}
		wire.WriteJSON(rc, Progress{Status: "success"})
		return nil
	}
	broken := append(appendFault(nil, wire.Internal(x.ID)), '\n')
	x.Stream(rc, "application/x-ndjson", broken, func(w *exchange.Writer) {
		defer c.leave(x.Client)
		lines := &news{w: w}
		ended := lines.follow()
		err := do(lines.tell)
		ended()
		end := line(Progress{Status: "success"})
		if err != nil {
			fault := told(x, err)
			x.Failed = fault.Text
			end = append(appendFault(nil, fault), '\n')
		}
		w.Send(end) //nolint:errcheck // there is nobody left to tell
	})
	return nil
}

func line(p Progress) []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("a line of progress: %v", err)) // texts and numbers
	}
	return append(text, '\n')
}

// news passes progress on to a client at intervals. Of the reports of one status in an interval, only the last is
// sent.
type news struct {
	w  *exchange.Writer
	mu sync.Mutex
	at []Progress
}

// often is the interval at which a client is told of progress.
const often = 100 * time.Millisecond

func (n *news) tell(p Progress) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last := len(n.at) - 1; last >= 0 && n.at[last].Status == p.Status {
		n.at[last] = p
		return
	}
	n.at = append(n.at, p)
}

// follow starts to report progress at intervals. ended reports the rest, and returns when all of it is sent.
func (n *news) follow() (ended func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(often)
		defer tick.Stop()
		for more := true; more; {
			select {
			case <-tick.C:
			case <-stop:
				more = false
			}
			n.flush()
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

func (n *news) flush() {
	n.mu.Lock()
	at := n.at
	n.at = nil
	n.mu.Unlock()
	var text []byte
	for _, p := range at {
		text = append(text, line(p)...)
	}
	if len(text) > 0 {
		n.w.Send(text) //nolint:errcheck // if the client has gone, that ends the work
	}
}
