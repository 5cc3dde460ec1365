package openai

import (
	"container/list"
	"strings"
	"sync"
)

// Limits of the conversations that responses can continue, in bytes. If they are exceeded, the owner with the most
// bytes loses the conversations that it has used least recently.
const (
	mostConversations = 8 << 20
	mostConversation  = 1 << 20 // of one conversation; a longer one is not kept
	aroundItems       = 400     // what a conversation counts beside its items, for ids, the map and the list
)

// conversations stores the conversations of /v1/responses, each by the id of the answer that ended it. Each is stored
// whole: the earlier one that it continues may be removed before it.
type conversations struct {
	mu    sync.Mutex
	byID  map[string]*list.Element
	used  list.List // of *conversation, the last used first
	bytes int
	owned map[string]int // bytes by owner; only owners that have some
}

// conversation holds the items of a request, and those of its answer once that is complete, as JSON without the
// list's brackets.
type conversation struct {
	id, owner, items string
	complete         bool
}

// begin stores the items of a request, and reports whether there is room for them.
func (c *conversations) begin(id, owner, items string) bool {
	if len(items) > mostConversation {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID, c.owned = map[string]*list.Element{}, map[string]int{}
	}
	if e := c.byID[id]; e != nil && e.Value.(*conversation).owner == owner { // its answer is gone on with
		c.remove(e)
	}
	c.byID[id] = c.used.PushFront(&conversation{id: id, owner: owner, items: strings.Clone(items)})
	c.add(owner, len(items)+aroundItems)
	c.shrink()
	return true
}

// end adds the items of the answer.
func (c *conversations) end(id string, items []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e == nil {
		return // it was removed to make room
	}
	talk := e.Value.(*conversation)
	if talk.complete {
		return
	}
	if len(talk.items)+len(items) >= mostConversation {
		c.remove(e)
		return
	}
	talk.items, talk.complete = talk.items+","+string(items), true
	c.add(talk.owner, 1+len(items))
	c.shrink()
}

// drop removes the conversation of an answer that ended without being complete.
func (c *conversations) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byID[id]; e != nil && !e.Value.(*conversation).complete {
		c.remove(e)
	}
}

// find returns the items of a conversation if it belongs to owner.
func (c *conversations) find(id, owner string) (items string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e == nil {
		return "", false
	}
	talk := e.Value.(*conversation)
	if talk.owner != owner || !talk.complete {
		return "", false
	}
	c.used.MoveToFront(e)
	return talk.items, true
}

// forget removes a conversation if it belongs to owner, and reports whether it did.
func (c *conversations) forget(id, owner string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e == nil || e.Value.(*conversation).owner != owner {
		return false
	}
	c.remove(e)
	return true
}

func (c *conversations) add(owner string, bytes int) {
	c.bytes += bytes
	if c.owned[owner] += bytes; c.owned[owner] == 0 {
		delete(c.owned, owner)
	}
}

// shrink removes conversations until they fit: of the owner with the most bytes, the least recently used ones. So no
// client can displace the conversations of those that keep less.
func (c *conversations) shrink() {
	for c.bytes > mostConversations {
		most := 0
		for _, bytes := range c.owned {
			most = max(most, bytes)
		}
		e := c.used.Back()
		for c.owned[e.Value.(*conversation).owner] < most {
			e = e.Prev()
		}
		c.remove(e)
	}
}

func (c *conversations) remove(e *list.Element) {
	talk := c.used.Remove(e).(*conversation)
	delete(c.byID, talk.id)
	c.add(talk.owner, -len(talk.items)-aroundItems)
}
