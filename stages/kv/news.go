package kv

import "slices"

// News is a change of what prompts can begin with. Only blocks that everybody shares are spoken of: those of salt 0
// whose text, and all text before it, is tokens (rows of pictures have numbers below 0). Tokens of others are told
// nobody.
type News struct {
	Kind   NewsKind
	Tier   Tier // where the block lies, or lay
	First  bool // no block is before it, and Parent stands for none
	Key    Key
	Parent Key
	Tokens tokenBlock
}

// NewsKind is what became of a block.
type NewsKind uint8

// A block that goes to another tier is told as stored there and then as removed from where it was. After Cleared there
// is none, until it is told again.
const (
	Stored NewsKind = iota
	Removed
	Cleared
)

// news collects what has yet to be told.
type news struct {
	watched bool
	told    bool // something was stored since all was cleared last
	due     []News
}

// Watch has changes collected from now on, beginning with Cleared. It is called before any sequence is opened.
func (c *Cache) Watch() {
	c.news.watched, c.tree.keyed = true, true
	c.news.due = append(c.news.due, News{Kind: Cleared})
}

// News hands over what happened since it was called last.
func (c *Cache) News() []News {
	all := c.news.due
	c.news.due = nil
	return all
}

// forgot notes that the books begin anew.
func (n *news) forgot() {
	if n.told {
		n.due = append(n.due, News{Kind: Cleared})
		n.told = false
	}
}

// note tells of a node, if prompts can go on from there, or not any more, or from another tier than was told.
func (c *Cache) note(n int32) {
	d := c.tree.node(n)
	if !c.news.watched || !d.open {
		return
	}
	is := c.lies(n)
	if is == d.told {
		return
	}
	if is != nowhere {
		c.tell(n, Stored, is)
	}
	if d.told != nowhere {
		c.tell(n, Removed, d.told)
	}
	d.told = is
}

// noteAll tells of all nodes of books that were filled at once, in any order but for the nodes: one has a lower number
// than those that go on from it.
func (c *Cache) noteAll() {
	for n := range c.tree.size {
		c.note(n)
	}
}

// public says whether a text is anybody's and made of tokens, up to the end of a block after parent.
func (t *tree) public(salt uint64, parent int32, text *tokenBlock) bool {
	return salt == 0 && (parent == noNode || t.node(parent).open) &&
		!slices.ContainsFunc(text[:], func(id int32) bool { return id < 0 })
}

// nowhere is the tier, counted from 1, of a block that is in none.
const nowhere = Tier(0)

// tell adds news of a node. at is a tier, counted from 1.
func (c *Cache) tell(n int32, kind NewsKind, at Tier) {
	d := c.tree.node(n)
	c.news.told = true
	c.news.due = append(c.news.due, News{Kind: kind, Tier: at - 1, First: d.parent == noNode, Key: d.key,
		Parent: c.tree.keyOf(d.salt, d.parent), Tokens: d.tokens})
}

// lies is the tier, counted from 1, of the slowest block of a node that prompts which begin with it need: of all
// classes that keep all. Where no class does, it is that of any block.
func (c *Cache) lies(n int32) (at Tier) {
	keeps := slices.ContainsFunc(c.classes, Class.keepsAll)
	for i, class := range c.classes {
		if keeps && !class.keepsAll() {
			continue
		}
		switch has := c.tree.has(i, n); {
		case has:
			at = max(at, c.tree.at(i, n).tier+1)
		case keeps:
			return nowhere
		}
	}
	return at
}
