package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/server/cluster/registry"
)

// listing is what a registry has listed last. While it cannot be asked, that stays.
type listing struct {
	registry.Registry
	addrs []string
	fault string // of the last call; "": it went well
}

// follow tells a registry of us and calls whom it lists, until ctx ends.
func (c *Cluster) follow(ctx context.Context, l *listing) {
	tick := time.NewTicker(registry.Beat)
	defer tick.Stop()
	for {
		addrs, err := l.Meet(ctx)
		if ctx.Err() == nil {
			c.listed(l, addrs, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			defer cancel()
			if err := l.Leave(last); err != nil {
				c.Log.Warn().Stringer("registry", l).Err(err).Msg("it lists us for a while yet")
			}
			return
		}
	}
}

// listed takes what a registry lists. A fault is logged when it is new.
func (c *Cluster) listed(l *listing, addrs []string, err error) {
	if err == nil && len(addrs) > mostMembers {
		err = fmt.Errorf("it lists %d members: want at most %d", len(addrs), mostMembers)
	}
	for _, addr := range addrs {
		if err == nil {
			err = CheckAddr(addr)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	switch {
	case fault != "" && fault != l.fault:
		c.Log.Warn().Stringer("registry", l).Msg("it finds nobody, and who is known stays: " + fault)
	case fault == "" && l.fault != "":
		c.Log.Info().Stringer("registry", l).Msg("it is there again")
	}
	if l.fault = fault; fault != "" {
		return
	}
	l.addrs = addrs
	for _, addr := range addrs {
		if c.peers[addr] == nil && addr != c.Addr && len(c.peers) < mostMembers {
			c.peers[addr] = &peer{}
		}
	}
}

// named reports whether an address is called on where nobody is heard.
func (c *Cluster) named(addr string) bool {
	return slices.Contains(c.Join, addr) ||
		slices.ContainsFunc(c.listings, func(l *listing) bool { return slices.Contains(l.addrs, addr) })
}
