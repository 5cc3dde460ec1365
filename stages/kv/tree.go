package kv

import (
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
)

// tokenBlock is the text of one block.
type tokenBlock = [backend.BlockSize]int32

const (
	// noNode stands for "none": the parent of a text's first block, the end of a list, the result of a miss.
	noNode = int32(-1)
	// noBlock is the block of an entry that has none.
	noBlock = int32(-1)
)

// node is one block of text after its parent's text. It is there as long as an open sequence, another node or a block
// of some class needs it.
type node struct {
	tokens   tokenBlock
	key      Key    // zero where nobody asks for it: see tree.keyed
	salt     uint64 // of the first block of a text; those after it are told apart by their parents
	parent   int32
	paths    int32 // open sequences that go through it
	children int32
	chain    int32 // next node of the same hash bucket, or next spare node
	open     bool  // its text is anybody's, and tokens: it is told of
	told     Tier  // where it was told to lie: see Cache.lies
}

// entry is what one class has of a node: the block that holds its keys and values, or the state after it.
//
// An open sequence that has the node's text in its table has there either the entry's block (counted in users) or a
// twin. Twins exist only while users > 0.
type entry struct {
	block int32   // number in its tier; noBlock: none
	kept  int32   // number on the disk, where it is as well; noBlock: it is not, or there alone
	tier  Tier    // where it lies, or will when moves are done; Device while it has users
	seen  bool    // another sequence may go on from there: see Cache.release
	users int32   // open sequences whose table holds block
	twins []int32 // equal private blocks of open sequences, in order of arrival
	made  uint64  // number of the last move that was decided on before the block was computed
	older int32   // neighbours in the idle list of the tier and class while users == 0
	newer int32
}

// idleList is the nodes whose block of a class lies in one tier and nobody uses, in the order in which they fell idle.
// In a class that keeps all blocks, a node on a path falls idle after its descendants on that path, hence every idle
// node stands behind its children in the list, or they are in a list of a later tier: the oldest goes on to the next
// tier, and comes back only with all nodes before it.
type idleList struct {
	length         int
	oldest, newest int32
}

// part is how many nodes memory is taken for at a time: a tree that grows is never copied, and has no more memory than
// it needs.
const part = 32

// tree is the prefix tree: a radix tree whose edges are whole blocks, stored as a hash table keyed by parent
// and text. Nodes are reused; a tree whose texts all have blocks of a class that keeps all allocates none later.
type tree struct {
	classes int
	keyed   bool              // nodes have keys
	size    int32             // number of nodes, in use or spare
	parts   []*[part]node     // of them
	entries [][]entry         // by part: [node][class]
	buckets []int32           // first node by hash; length a power of two
	spare   int32             // first unused node
	idle    [Tiers][]idleList // by class
}

func newTree(classes, nodes int) tree {
	t := tree{classes: classes, spare: noNode}
	for i := range t.idle {
		t.idle[i] = slices.Repeat([]idleList{{oldest: noNode, newest: noNode}}, classes)
	}
	t.extend(max(nodes, 1))
	return t
}

// extend makes room for more nodes, all in all at least so many. There is no spare one.
func (t *tree) extend(nodes int) {
	had := t.size
	for int(t.size) < nodes {
		t.parts = append(t.parts, new([part]node))
		t.entries = append(t.entries, slices.Repeat([]entry{{block: noBlock, kept: noBlock}}, part*t.classes))
		t.size += part
	}
	for n := t.size - 1; n >= had; n-- {
		t.node(n).chain, t.spare = t.spare, n
	}
	size := max(len(t.buckets), 1)
	for size < int(t.size) {
		size *= 2
	}
	if size == len(t.buckets) {
		return
	}
	t.buckets = slices.Repeat([]int32{noNode}, size)
	for n := range had {
		d := t.node(n)
		head := t.bucket(d.salt, d.parent, &d.tokens)
		d.chain, *head = *head, n
	}
}

// node is a node by its number.
func (t *tree) node(n int32) *node { return &t.parts[n/part][n%part] }

// at is the entry of a class at a node.
func (t *tree) at(class int, n int32) *entry { return &t.of(n)[class] }

// of is the entries of a node.
func (t *tree) of(n int32) []entry { return t.entries[n/part][int(n%part)*t.classes:][:t.classes] }

// has says whether a class has a block at a node.
func (t *tree) has(class int, n int32) bool { return t.at(class, n).block != noBlock }

// isIdle says that a class has a block there, which nobody uses.
func (t *tree) isIdle(class int, n int32) bool { return t.has(class, n) && t.at(class, n).users == 0 }

// bucket hashes salt, parent and text. Equality is always checked, so that a collision costs time only.
func (t *tree) bucket(salt uint64, parent int32, text *tokenBlock) *int32 {
	const odd = 0x9e3779b97f4a7c15 // 2⁶⁴ over the golden ratio
	h := (uint64(uint32(parent)) + 1) * odd
	if parent == noNode {
		h = (h ^ salt) * odd
	}
	for _, id := range text {
		h = (h ^ h>>29 ^ uint64(uint32(id))) * odd
	}
	return &t.buckets[(h>>32)&uint64(len(t.buckets)-1)]
}

// find returns the node of text after parent, or noNode.
func (t *tree) find(salt uint64, parent int32, text *tokenBlock) int32 {
	for n := *t.bucket(salt, parent, text); n != noNode; n = t.node(n).chain {
		d := t.node(n)
		if d.parent == parent && d.tokens == *text && (parent != noNode || d.salt == salt) {
			return n
		}
	}
	return noNode
}

// insert adds the node of text after parent, which find missed. It has no block yet.
func (t *tree) insert(salt uint64, parent int32, text *tokenBlock) int32 {
	if t.spare == noNode {
		t.extend(int(t.size) + 1)
	}
	n, head := t.spare, t.bucket(salt, parent, text)
	t.spare = t.node(n).chain
	*t.node(n) = node{tokens: *text, salt: salt, parent: parent, chain: *head, open: t.public(salt, parent, text)}
	*head = n
	if t.keyed {
		t.node(n).key = t.keyOf(salt, parent).next(text)
	}
	for i := range t.classes {
		e := t.at(i, n)
		*e = entry{block: noBlock, kept: noBlock, twins: e.twins[:0]}
	}
	if parent != noNode {
		t.node(parent).children++
	}
	return n
}

// prune removes a node that nothing needs any more, and then maybe its parent.
func (t *tree) prune(n int32) {
	for n != noNode {
		d := t.node(n)
		if d.paths > 0 || d.children > 0 {
			return
		}
		for i := range t.classes {
			if t.has(i, n) {
				return
			}
		}
		at := t.bucket(d.salt, d.parent, &d.tokens)
		for *at != n {
			at = &t.node(*at).chain
		}
		*at = d.chain
		d.chain, t.spare = t.spare, n
		if n = d.parent; n != noNode {
			t.node(n).children--
		}
	}
}

// pin adds a user to the block of a class at n.
func (t *tree) pin(class int, n int32) {
	e := t.at(class, n)
	if e.users == 0 {
		t.unlink(class, n)
	}
	e.users++
}

// release ends one sequence's use of n, for which it had block b in its table, and says whether b stays where it is,
// cached or used by others. Else it is free.
func (t *tree) release(class int, n, b int32, seen bool) (kept bool) {
	e := t.at(class, n)
	if e.block != b {
		i := slices.Index(e.twins, b)
		if i < 0 {
			panic("kv: a sequence's block is neither its node's nor a twin")
		}
		e.twins = slices.Delete(e.twins, i, i+1)
		return false
	}
	e.users--
	switch {
	case e.users > 0:
		return true
	case len(e.twins) > 0: // its owner becomes the entry's user
		e.block, e.users = e.twins[0], 1
		e.twins = slices.Delete(e.twins, 0, 1)
		return false
	}
	e.seen = seen
	t.link(class, n)
	return true
}

// link appends n to the idle list of its block's tier.
func (t *tree) link(class int, n int32) {
	e := t.at(class, n)
	l := &t.idle[e.tier][class]
	e.older, e.newer = l.newest, noNode
	if l.newest != noNode {
		t.at(class, l.newest).newer = n
	} else {
		l.oldest = n
	}
	l.newest = n
	l.length++
}

// unlink takes n out of the idle list that it is in.
func (t *tree) unlink(class int, n int32) {
	e := t.at(class, n)
	l := &t.idle[e.tier][class]
	if e.older != noNode {
		t.at(class, e.older).newer = e.newer
	} else {
		l.oldest = e.newer
	}
	if e.newer != noNode {
		t.at(class, e.newer).older = e.older
	} else {
		l.newest = e.older
	}
	l.length--
}
