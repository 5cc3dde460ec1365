package kv

// tokenBlock is the text of one block.
type tokenBlock = [BlockSize]int32

// noNode stands for "none": the parent of a text's first block, the end of a list, the result of a miss.
const noNode = int32(-1)

// node is one block of text after its parent's text, and the block that holds its keys and values.
//
// An open sequence with a node on its path has, for that node, either the node's block in its table (counted
// in refs) or a twin. Twins exist only while refs > 0, so a node in use has all its ancestors in use.
type node struct {
	tokens tokenBlock
	parent int32
	block  Block
	refs   int32   // open sequences whose table holds block
	twins  []Block // equal private blocks of open sequences, in order of arrival
	chain  int32   // next node of the same hash bucket, or next spare node
	older  int32   // neighbours in the idle list while refs == 0
	newer  int32
}

// tree is the prefix tree: a radix tree whose edges are whole blocks, stored as a hash table keyed by parent
// and text. Nodes come from a fixed array, one for each block there is, so that it allocates nothing later.
//
// The idle list holds the nodes with refs == 0 in the order in which they fell idle. A node on a path falls
// idle after its descendants on that path, hence every idle node stands behind its children in the list, and
// the oldest is always a leaf.
type tree struct {
	nodes   []node
	buckets []int32 // first node by hash; length a power of two
	spare   int32   // first unused node
	idle    int     // length of the idle list
	oldest  int32
	newest  int32
}

func newTree(blocks int) tree {
	size := 1
	for size < blocks {
		size *= 2
	}
	t := tree{nodes: make([]node, blocks), buckets: make([]int32, size), spare: noNode, oldest: noNode, newest: noNode}
	for i := range t.buckets {
		t.buckets[i] = noNode
	}
	for i := blocks - 1; i >= 0; i-- {
		t.nodes[i].chain = t.spare
		t.spare = int32(i)
	}
	return t
}

// bucket hashes parent and text. Equality is always checked, so that a collision costs time only.
func (t *tree) bucket(parent int32, text *tokenBlock) *int32 {
	const odd = 0x9e3779b97f4a7c15 // 2⁶⁴ over the golden ratio
	h := (uint64(uint32(parent)) + 1) * odd
	for _, id := range text {
		h = (h ^ h>>29 ^ uint64(uint32(id))) * odd
	}
	return &t.buckets[(h>>32)&uint64(len(t.buckets)-1)]
}

// find returns the node of text after parent, or noNode.
func (t *tree) find(parent int32, text *tokenBlock) int32 {
	if len(t.nodes) == 0 {
		return noNode
	}
	for n := *t.bucket(parent, text); n != noNode; n = t.nodes[n].chain {
		if t.nodes[n].parent == parent && t.nodes[n].tokens == *text {
			return n
		}
	}
	return noNode
}

// insert adds the node of text after parent, which find missed, with its one user. There is always a spare
// node: each node backs a block, and b backs none yet.
func (t *tree) insert(parent int32, text *tokenBlock, b Block) int32 {
	n, head := t.spare, t.bucket(parent, text)
	t.spare = t.nodes[n].chain
	t.nodes[n] = node{tokens: *text, parent: parent, block: b, refs: 1, twins: t.nodes[n].twins[:0], chain: *head}
	*head = n
	return n
}

// pin adds a user to n's block.
func (t *tree) pin(n int32) {
	if t.nodes[n].refs == 0 {
		t.unlink(n)
	}
	t.nodes[n].refs++
}

// replace lets b, a user's equal block, back the idle node n, and returns the block that backed it.
func (t *tree) replace(n int32, b Block) (old Block) {
	t.pin(n)
	old, t.nodes[n].block = t.nodes[n].block, b
	return old
}

// release ends one sequence's use of n, for which it had block b in its table. Exactly one block may become
// free by that: the one returned, unless kept.
func (t *tree) release(n int32, b Block) (freed Block, kept bool) {
	d := &t.nodes[n]
	if d.block != b {
		for i, twin := range d.twins {
			if twin == b {
				d.twins = append(d.twins[:i], d.twins[i+1:]...)
				return b, false
			}
		}
		panic("kv: a sequence's block is neither its node's nor a twin")
	}
	d.refs--
	switch {
	case d.refs > 0:
		return b, true
	case len(d.twins) > 0: // its owner becomes the node's user
		d.block, d.refs = d.twins[0], 1
		d.twins = append(d.twins[:0], d.twins[1:]...)
		return b, false
	}
	d.older, d.newer = t.newest, noNode
	if t.newest != noNode {
		t.nodes[t.newest].newer = n
	} else {
		t.oldest = n
	}
	t.newest = n
	t.idle++
	return b, true
}

// evict removes the node that has been idle longest, and returns its block. The idle list is not empty.
func (t *tree) evict() Block {
	n := t.oldest
	t.unlink(n)
	d := &t.nodes[n]
	at := t.bucket(d.parent, &d.tokens)
	for *at != n {
		at = &t.nodes[*at].chain
	}
	*at = d.chain
	d.chain, t.spare = t.spare, n
	return d.block
}

// unlink takes n out of the idle list.
func (t *tree) unlink(n int32) {
	d := &t.nodes[n]
	if d.older != noNode {
		t.nodes[d.older].newer = d.newer
	} else {
		t.oldest = d.newer
	}
	if d.newer != noNode {
		t.nodes[d.newer].older = d.older
	} else {
		t.newest = d.older
	}
	t.idle--
}
