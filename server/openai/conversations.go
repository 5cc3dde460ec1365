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
// whole, but for large pictures, of which an owner has each once: the earlier one that it continues may be removed
// before it.
type conversations struct {
	mu       sync.Mutex
	byID     map[string]*list.Element
	used     list.List // of *conversation, the last used first
	texts    room
	pictures map[pictureKey]*keptPicture
	shown    room
}

// conversation holds the items of a request, and those of its answer once that is complete, as JSON without the
// list's brackets.
type conversation struct {
	id, owner, items string
	shows            []string // names of the pictures that are kept apart
	complete         bool
}

// begin stores the items of a request, and reports whether there is room for them.
func (c *conversations) begin(id, owner, items string) bool {
	items, sent, names := apart(items)
	if len(items) > mostConversation {
		return false
	}
	return c.put(&conversation{id: id, owner: owner, items: strings.Clone(items), shows: names}, sent)
}

// put is begin of a conversation whose new pictures were taken apart.
func (c *conversations) put(talk *conversation, sent map[string]*keptPicture) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID, c.pictures = map[string]*list.Element{}, map[pictureKey]*keptPicture{}
	}
	if !c.show(talk, sent) {
		return false
	}
	if e := c.byID[talk.id]; e != nil && e.Value.(*conversation).owner == talk.owner { // its answer is gone on with
		c.remove(e)
	}
	c.byID[talk.id] = c.used.PushFront(talk)
	c.texts.add(talk.owner, len(talk.items)+aroundItems)
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
	c.texts.add(talk.owner, 1+len(items))
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

// room is how many bytes are kept, of all owners and of each.
type room struct {
	bytes int
	owned map[string]int // only owners that have some
}

func (r *room) add(owner string, bytes int) {
	if r.owned == nil {
		r.owned = map[string]int{}
	}
	r.bytes += bytes
	if r.owned[owner] += bytes; r.owned[owner] == 0 {
		delete(r.owned, owner)
	}
}

// shrink removes conversations until they fit: of the owner with the most bytes, the least recently used ones. So no
// client can displace the conversations of those that keep less.
func (c *conversations) shrink() {
	for c.texts.bytes > mostConversations {
		c.remove(c.oldest(&c.texts, 0))
	}
	for c.shown.bytes > mostPictures {
		c.remove(c.oldest(&c.shown, 1))
	}
}

// oldest is the least recently used conversation of the owner with the most bytes, among those with some pictures.
func (c *conversations) oldest(of *room, pictures int) *list.Element {
	most := 0
	for _, bytes := range of.owned {
		most = max(most, bytes)
	}
	e := c.used.Back()
	for talk := e.Value.(*conversation); of.owned[talk.owner] < most || len(talk.shows) < pictures; {
		e = e.Prev()
		talk = e.Value.(*conversation)
	}
	return e
}

func (c *conversations) remove(e *list.Element) {
	talk := c.used.Remove(e).(*conversation)
	delete(c.byID, talk.id)
	c.texts.add(talk.owner, -len(talk.items)-aroundItems)
	c.hide(talk)
}
