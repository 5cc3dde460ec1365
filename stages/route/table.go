package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Table has what members said last, and what was sent to them since.
type Table struct{ members []Member } // by name

// mostSent bounds the keys that are remembered of what was sent to a member since it was heard of.
const mostSent = 4096

// since is what a member has been sent that is not in what it said.
type since struct {
	busy time.Duration // that it takes to read it
	keys map[sentKey]struct{}
}

type sentKey struct {
	model string
	key   Key
}

func (s *since) wait() time.Duration {
	if s == nil {
		return 0
	}
	return s.busy
}

func (s *since) has(model string, k Key) bool {
	if s == nil {
		return false
	}
	_, ok := s.keys[sentKey{model, k}]
	return ok
}

// Hear takes what a member says of itself in place of what it said before, unless that cannot be.
func (t *Table) Hear(m Member) error {
	if err := m.check(); err != nil {
		return err
	}
	m.since = &since{keys: map[sentKey]struct{}{}}
	at, known := t.find(m.Name)
	if known {
		t.members[at] = m
		return nil
	}
	t.members = slices.Insert(t.members, at, m)
	return nil
}

// longest bounds each time that a member may speak of: no sum of a few overflows.
const longest = 1000 * time.Hour

// check finds what no member can say.
func (m *Member) check() error {
	if m.Name == "" {
		return errors.New("a member without a name: want one that no other has")
	}
	for i := range m.Models {
		o := &m.Models[i]
		times := [...]struct {
			what string
			is   time.Duration
		}{{"load", o.Load}, {"wait", o.Wait}, {"token", o.Token}, {"each", o.Each}}
		for _, x := range times {
			if x.is < 0 || x.is > longest {
				return fmt.Errorf("member %.80q, model %.80q: %s is %v: want 0 to %v", m.Name, o.Name, x.what, x.is, longest)
			}
		}
	}
	return nil
}

// Lose forgets a member that has left, or that does not answer.
func (t *Table) Lose(name string) {
	if at, known := t.find(name); known {
		t.members = slices.Delete(t.members, at, at+1)
	}
}

func (t *Table) find(name string) (at int, known bool) {
	by := func(m Member, name string) int { return strings.Compare(m.Name, name) }
	return slices.BinarySearchFunc(t.members, name, by)
}

// Members are the members that were heard of, by name. They must not be changed.
func (t *Table) Members() []Member { return t.members }

// Send chooses a member for a request, and takes it that it is sent there.
func (t *Table) Send(r *Request) (Choice, error) {
	c, err := Choose(t.members, r)
	if err != nil {
		return c, err
	}
	at, _ := t.find(c.Member)
	s := t.members[at].since
	s.busy = min(s.busy+c.read, longest)
	for _, k := range r.Keys[:min(len(r.Keys), mostSent-len(s.keys))] {
		s.keys[sentKey{r.Model, k}] = struct{}{}
	}
	return c, nil
}
