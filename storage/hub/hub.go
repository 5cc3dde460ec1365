// Package hub brings published models into a store: from Hugging Face, and from Ollama's registry.
//
// Answers of a hub are not trusted: sizes are bounded, names cannot leave the store, and a file is accepted only if
// its checksum is right. Flags, terminals and environment variables are left to callers, the layout of files on disk
// to storage/store.
package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/storage/store"
)

// Client pulls models from hubs.
type Client struct {
	Endpoint string // URL of a mirror, or of another registry; empty: that of the hub that the model's name states
	Token    string // for Hugging Face, or empty; it is sent to no other host than the endpoint's
	Login    string // token of the Hub's own login, for want of Token; it is sent to huggingface.co alone
	Agent    string // the User-Agent header

	// Progress, if not nil, is called with the progress of a pull, one call at a time.
	Progress func(Progress)
	// Waits, if not nil, is called with what a pull waits for, one call at a time.
	Waits func(Wait)

	now      func() time.Time // nil: time.Now
	wait     func(context.Context, time.Duration) error
	patience time.Duration // how long a server may send nothing; 0: one minute
}

// Progress is how far a pull has come.
type Progress struct {
	Name        store.Name
	Digest      store.Digest // of its first file
	Done, Total int64        // bytes
	Waiting     bool         // another pull is fetching the missing bytes
}

// Wait is something that takes time and shows no progress: a hub that is asked about a model, or the pause before
// another try.
type Wait struct {
	Host       string
	Failed     string // what went wrong, if this is a pause
	Pause      time.Duration
	Try, Tries int // the number of the next try, and how many there are in a row at most
}

// Pulled is the result of a pull.
type Pulled struct {
	Manifest store.Manifest
	Fresh    bool  // the store had it already, in the hub's version
	Received int64 // bytes that this pull has fetched
}

// offer is a model that a hub has under a name.
type offer struct {
	manifest store.Manifest
	places   []*url.URL // URLs of the manifest's files, in their order
	token    string     // for requests to the hub; empty: none

	git   []string                // by file: its hash in git, which checks files that have no digest yet
	small map[store.Digest][]byte // contents of files that were fetched with the offer
}

// URLs of the hubs, used if Client.Endpoint is empty.
const (
	huggingFaceURL = "https://huggingface.co"
	ollamaURL      = "https://registry.ollama.ai"
)

// Pull brings a model into a store. If it fails, the bytes that have come are kept, and the next pull continues with
// them; but nothing is kept of a model with a wrong checksum.
func (c *Client) Pull(ctx context.Context, s *store.Store, n store.Name) (*Pulled, error) {
	base, err := c.endpoint(n)
	if err != nil {
		return nil, err
	}
	hub := &session{Client: c, base: base, token: c.tokenFor(base), patience: cmp.Or(c.patience, patience)}
	hub.http = &http.Client{Transport: hub.transport(), CheckRedirect: noRedirect}
	hub.waits(Wait{Host: base.Host})
	o, err := hub.find(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	name, err := o.manifest.Named()
	if err != nil {
		return nil, fmt.Errorf("%s: what the hub says: %w", n, err)
	}
	if fresh(s, name, &o.manifest) {
		return &Pulled{Manifest: o.manifest, Fresh: true}, nil
	}
	received, err := hub.bring(ctx, s, name, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Pulled{Manifest: o.manifest, Received: received}, nil
}

// tokenFor returns the token for Hugging Face's API at a URL.
func (c *Client) tokenFor(base *url.URL) string {
	if c.Token == "" && strings.TrimSuffix(base.String(), "/") == huggingFaceURL {
		return c.Login
	}
	return c.Token
}

// endpoint returns the URL of a name's hub.
func (c *Client) endpoint(n store.Name) (*url.URL, error) {
	text := c.Endpoint
	switch {
	case text != "":
	case n.Host == store.HuggingFace:
		text = huggingFaceURL
	default:
		text = ollamaURL
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("the endpoint %q is no address of a hub: want a URL such as %s", text, huggingFaceURL)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

// transport returns an HTTP/1.1 transport, which opens a connection for each request. Streams of one HTTP/2 connection
// would share its flow-control window. Of connections that are kept for the next request, net/http prints what a server
// sends unasked.
func (h *session) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = time.Minute
	t.DisableKeepAlives = true
	t.DialContext = h.bounds.dial
	t.DisableCompression = true // ranges count the bytes of the file
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	return t
}

// session is one pull.
type session struct {
	*Client
	http     *http.Client
	base     *url.URL
	token    string // for Hugging Face, or empty
	patience time.Duration
	bounds   bounds

	mu sync.Mutex // held while Waits is called
}

func (h *session) waits(w Wait) {
	if h.Waits == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Waits(w)
}

func (h *session) find(ctx context.Context, n store.Name) (*offer, error) {
	if n.Host == store.HuggingFace {
		return h.findHuggingFace(ctx, n)
	}
	return h.findOllama(ctx, n)
}

// fresh reports whether a store has a model exactly as offered.
func fresh(s *store.Store, name store.Name, m *store.Manifest) bool {
	have, err := s.Find(name)
	if err != nil || have.Name != name || !slices.Equal(have.Files, m.Files) || have.Revision != m.Revision {
		return false
	}
	_, err = s.Path(have)
	return err == nil && s.Complete(m)
}

// bring fetches the missing files of an offer.
func (h *session) bring(ctx context.Context, s *store.Store, name store.Name, o *offer) (received int64, err error) {
	p, err := s.Begin(ctx, o.manifest)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	m := &meter{tell: h.Progress, at: Progress{Name: name, Digest: o.manifest.Files[0].Digest,
		Done: s.Arrived(&o.manifest), Total: o.manifest.Size()}}
	m.add(0)
	for i, f := range o.manifest.Files {
		waiting := func() { m.set(s.Arrived(&o.manifest), true) }
		part, err := p.Partial(ctx, f, waiting)
		if small := o.small[f.Digest]; err == nil && part != nil && small != nil {
			err = part.Fill(small)
			m.add(f.Size)
		} else if err == nil && part != nil {
			err = (&download{session: h, file: f, part: part, meter: m, token: o.token, origin: o.places[i]}).run(ctx)
		}
		if err != nil {
			if name.Host == store.HuggingFace {
				err = h.explain(name, err)
			}
			return m.received, h.lost(ctx, p, s.Arrived(&o.manifest), err)
		}
		m.set(s.Arrived(&o.manifest), false)
	}
	return m.received, p.Commit(ctx)
}

// lost returns err. If it is a wrong checksum, or the hub has refused all of a model, lost removes what there is of the
// pull; after any other error what has arrived is kept.
func (h *session) lost(ctx context.Context, p *store.Pull, arrived int64, err error) error {
	if wrong := (*store.WrongContent)(nil); errors.As(err, &wrong) || arrived == 0 && Locked(err) {
		return errors.Join(err, p.Abandon(context.WithoutCancel(ctx)))
	}
	return err
}

// Locked reports whether an error says that a hub wants to know who asks, or has somebody else in mind.
func Locked(err error) bool {
	r := (*Refused)(nil)
	return errors.As(err, &r) && (r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden)
}

// meter counts received bytes and reports progress.
type meter struct {
	tell func(Progress)

	mu       sync.Mutex
	at       Progress
	received int64
}

// add counts received bytes; a negative n takes back bytes that turned out useless.
func (m *meter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.received += max(n, 0)
	m.at.Done += n
	m.at.Waiting = false
	m.told()
}

func (m *meter) set(done int64, waiting bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at.Done, m.at.Waiting = done, waiting
	m.told()
}

func (m *meter) told() {
	if m.tell != nil {
		m.tell(m.at)
	}
}
