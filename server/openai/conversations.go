package openai

import (
	"container/list"
	"strings"
	"sync"
)

// Bytes of conversations that responses can go on with. Those that were not used for the longest time leave first.
const (
	mostConversations = 8 << 20
	mostConversation  = 1 << 20 // of one; a longer one is not kept
	aroundItems       = 400     // of what is kept beside the items
)

// conversations are those that answers of /v1/responses ended, by the answer's id. Each is kept whole: it outlives
// those that it went on with.
type conversations struct {
	mu    sync.Mutex
	byID  map[string]*list.Element
	used  list.List // of *conversation, the last used first
	bytes int
}

// conversation is the items of a request, and of its answer once that is complete, as a list of JSON without brackets.
type conversation struct {
	id, owner, items string
	complete         bool
}

// begin keeps what an answer is asked to; it says whether there is room for it.
func (c *conversations) begin(id, owner, items string) bool {
	if len(items) > mostConversation {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[string]*list.Element{}
	}
	c.byID[id] = c.used.PushFront(&conversation{id: id, owner: owner, items: strings.Clone(items)})
	c.bytes += len(items) + aroundItems
	c.shrink()
	return true
}

// end adds the items of the answer.
func (c *conversations) end(id string, items []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e == nil {
		return // it had to leave, or is complete
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
	c.bytes += 1 + len(items)
	c.shrink()
}

// drop forgets an answer that there is none of.
func (c *conversations) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byID[id]; e != nil {
		c.remove(e)
	}
}

// find returns the items of a conversation to its owner.
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

func (c *conversations) shrink() {
	for c.bytes > mostConversations {
		c.remove(c.used.Back())
	}
}

func (c *conversations) remove(e *list.Element) {
	talk := c.used.Remove(e).(*conversation)
	delete(c.byID, talk.id)
	c.bytes -= len(talk.items) + aroundItems
}
