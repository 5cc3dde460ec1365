package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/internal/pass"
	"github.com/sluice-ai/sluice/server/cluster/registry"
	"github.com/sluice-ai/sluice/stages/route"
)

const (
	beat     = 300 * time.Millisecond  // from one call to the next
	silence  = 1500 * time.Millisecond // after which a member is taken to have gone
	patience = time.Second             // with a call
)

// Options are what a member is given.
type Options struct {
	Pass   *pass.Pass
	Addr   string               // where others reach it
	Join   []string             // addresses of members that may be there
	Found  []registry.Registry  // who lists further ones
	Offers func() []route.Model // what it has, set by its server; their Known is added here
	Log    zerolog.Logger
}

// Cluster is the view that one member has of its cluster. Its methods may be called from any goroutine.
type Cluster struct {
	Options
	http     *http.Client
	listings []*listing // of Found; their contents are under mu
	calls    sync.WaitGroup

	mu      sync.Mutex
	table   route.Table
	peers   map[string]*peer // by address
	known   map[string]*memory
	drained bool
}

// peer is who is called at an address.
type peer struct {
	member string        // "": nobody is heard there
	heard  time.Time     // last; of an address where nobody was, when it was named
	gone   chan struct{} // closed when the member is lost; nil: there is none
	called bool          // just now
	fault  string        // of the last call; "": it went well
}

// New makes the view of a member that has not called anybody yet.
func New(o Options) (*Cluster, error) {
	c := &Cluster{Options: o, peers: map[string]*peer{}, known: map[string]*memory{}}
	for _, addr := range o.Join {
		if err := CheckAddr(addr); err != nil {
			return nil, err
		}
		if addr != o.Addr {
			c.peers[addr] = &peer{}
		}
	}
	for _, r := range o.Found {
		c.listings = append(c.listings, &listing{Registry: r})
	}
	c.http = &http.Client{Transport: &http.Transport{TLSClientConfig: o.Pass.Client(), MaxIdleConnsPerHost: 32,
		IdleConnTimeout: time.Minute, TLSHandshakeTimeout: patience, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// Run calls the others until ctx ends.
func (c *Cluster) Run(ctx context.Context) {
	defer c.http.CloseIdleConnections()
	var following sync.WaitGroup
	defer following.Wait()
	for _, l := range c.listings {
		following.Go(func() { c.follow(ctx, l) })
	}
	following.Go(func() { every(ctx, beat/3, c.forget) })
	every(ctx, beat, func() { c.round(ctx) })
	c.calls.Wait()
}

// every does something at once, and then once a period until ctx ends.
func every(ctx context.Context, period time.Duration, do func()) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		do()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// round calls every other member, but for those whose last call has not ended: who is silent holds up nobody else's.
func (c *Cluster) round(ctx context.Context) {
	say := c.Report()
	c.mu.Lock()
	if err := c.own(say); err != nil {
		c.Log.Warn().Err(err).Msg("what we say of ourselves")
	}
	defer c.mu.Unlock()
	for addr, p := range c.peers {
		if !p.called {
			p.called = true
			c.calls.Go(func() { c.ended(p, addr, c.call(ctx, addr, say)) })
		}
	}
}

// forget forgets members that were silent for too long.
func (c *Cluster) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for addr, p := range c.peers {
		if time.Since(p.heard) <= silence {
			continue
		}
		if p.member != "" {
			c.lose(addr, p)
		}
		if !c.named(addr) {
			delete(c.peers, addr)
		}
	}
}

// own takes what we say into the table: we are chosen as others are.
func (c *Cluster) own(say *Report) error {
	m, err := say.member()
	if err != nil {
		return err
	}
	return c.table.Hear(m)
}

// lose has nothing go to a member until it is heard of again, and ends what waits for it.
func (c *Cluster) lose(addr string, p *peer) {
	c.Log.Warn().Str("member", p.member).Str("addr", addr).Msg("a member has gone")
	c.table.Lose(p.member)
	close(p.gone)
	p.member, p.gone = "", nil
}

// ended notes how a call went. A fault is logged when it is new.
func (c *Cluster) ended(p *peer, addr string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.called = false; c.peers[addr] != p {
		return // it was forgotten meanwhile
	}
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	if fault != "" && fault != p.fault {
		c.Log.Warn().Str("addr", addr).Msg("no member is heard there: " + fault)
	}
	p.fault = fault
}

// Report is what this member says of itself now.
func (c *Cluster) Report() *Report {
	models := c.Offers()
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &Report{Version: version, Member: c.Pass.Member, Addr: c.Addr, Drained: c.drained}
	for i := range models {
		models[i].Known = c.known[models[i].Name].sketch()
	}
	r.offer(models[:min(len(models), mostModels)])
	for addr, p := range c.peers {
		if p.member != "" {
			r.Others = append(r.Others, addr)
		}
	}
	slices.Sort(r.Others)
	return r
}

// Drain has nothing new come from others.
func (c *Cluster) Drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drained = true
}

// Meet takes what a member says that showed the certificate of this name.
func (c *Cluster) Meet(is *Report, name string) error {
	m, err := is.member()
	if err != nil {
		return err
	}
	switch {
	case is.Member != name:
		return fmt.Errorf("it says that it is %q, and its pass is of %q", is.Member, name)
	case name == c.Pass.Member && is.Addr != c.Addr:
		return fmt.Errorf("the pass of %s is in use at %s and at %s: make each member one of its own, with sluice cluster cert",
			name, c.Addr, is.Addr)
	case name == c.Pass.Member:
		return nil // it is ourselves, by another address
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for addr, p := range c.peers {
		if p.member == name && addr != is.Addr && time.Since(p.heard) <= silence {
			return fmt.Errorf("the pass of %s is in use at %s and at %s: make each member one of its own, with sluice cluster cert",
				name, addr, is.Addr)
		}
	}
	if c.peers[is.Addr] == nil && len(c.peers) >= mostMembers {
		return fmt.Errorf("there are %d members, and no more are taken", mostMembers)
	}
	if err := c.table.Hear(m); err != nil {
		return err
	}
	for _, addr := range append([]string{is.Addr}, is.Others...) {
		if c.peers[addr] == nil && addr != c.Addr && len(c.peers) < mostMembers {
			c.peers[addr] = &peer{heard: time.Now()}
		}
	}
	p := c.peers[is.Addr]
	if p.member != name {
		if p.member != "" {
			c.lose(is.Addr, p)
		}
		p.gone = make(chan struct{})
		c.Log.Info().Str("member", name).Str("addr", is.Addr).Msg("a member has come")
	}
	p.member, p.heard = name, time.Now()
	return nil
}

// Shown is a member as people see it.
type Shown struct {
	Member  string   `json:"member,omitempty"` // "": nobody is heard at this address
	Addr    string   `json:"addr"`
	Self    bool     `json:"self,omitempty"`
	Drained bool     `json:"drained,omitempty"`
	Models  []string `json:"models,omitempty"` // that are loaded
	Others  []string `json:"unloaded,omitempty"`
	Heard   int64    `json:"heard_ms,omitempty"` // ago
	Fault   string   `json:"fault,omitempty"`
}

// Members lists the members, ourselves first, addresses where nobody is heard, and registries that do not answer.
func (c *Cluster) Members() []Shown {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := []Shown{c.shown(c.Pass.Member, c.Addr)}
	all[0].Self = true
	var others []Shown
	for addr, p := range c.peers {
		s := c.shown(p.member, addr)
		if s.Fault = p.fault; p.member != "" {
			s.Heard = max(time.Since(p.heard).Milliseconds(), 1)
		}
		others = append(others, s)
	}
	for _, l := range c.listings {
		if l.fault != "" {
			others = append(others, Shown{Addr: l.String(), Fault: l.fault})
		}
	}
	slices.SortFunc(others, func(a, b Shown) int {
		return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Addr, b.Addr))
	})
	return append(all, others...)
}

func (c *Cluster) shown(member, addr string) Shown {
	s := Shown{Member: member, Addr: addr}
	for _, m := range c.table.Members() {
		if m.Name != member {
			continue
		}
		s.Drained = m.Drained
		for i := range m.Models {
			if m.Models[i].Load == 0 {
				s.Models = append(s.Models, m.Models[i].Name)
			} else {
				s.Others = append(s.Others, m.Models[i].Name)
			}
		}
	}
	return s
}
