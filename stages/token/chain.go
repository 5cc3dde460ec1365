package token

// chain merges neighbouring symbols of a text, best pair first, until no pair is left. Both BPE kinds use it; they
// differ in the rank of a pair (joiner). With n symbols there are fewer than 3n pairs, each of which enters and
// leaves a binary heap once; the heap holds fewer than 2n: O(n log n) for any text.
type chain struct {
	symbols []symbol
	pairs   []pair // binary heap, best on top
	steps   int    // pairs handled since the chain was made; tests bound it
}

// symbol is a stretch of the text. A symbol that was merged into its left neighbour has start == end.
type symbol struct {
	start, end int32
	id         ID    // the token it is, or what the joiner calls it
	prev, next int32 // neighbours, -1 at the ends
}

// pair is a possible merge of two neighbours.
type pair struct {
	rank        int32 // lower is better; of equals, the leftmost
	left, right int32
	end         int32 // where right ended when the pair was found: it is stale if right has grown since
	id          ID    // what the merge gives
}

// joiner returns whether two neighbours may merge, at which rank, and into which symbol.
type joiner interface {
	join(text string, left, right *symbol) (rank int32, id ID, ok bool)
}

// reset makes room for a text of that many bytes. Growing step by step, a long text would leave as much garbage
// again.
func (c *chain) reset(bytes int) {
	c.symbols, c.pairs = room(c.symbols, bytes), room(c.pairs, 2*bytes)
}

// room returns an empty list with room for n entries; short texts reuse list.
func room[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, 0, max(n, min(2*cap(list), shortWord)))
	}
	return list[:0]
}

// shortWord exceeds the length of words in natural text, in bytes. Up to there lists grow as needed.
const shortWord = 4096

// add appends a symbol.
func (c *chain) add(start, end int, id ID) {
	n := int32(len(c.symbols))
	if n > 0 {
		c.symbols[n-1].next = n
	}
	c.symbols = append(c.symbols, symbol{start: int32(start), end: int32(end), id: id, prev: n - 1, next: -1})
}

// merge merges all that it can; the remaining symbols are the chain from symbol 0 on.
func (c *chain) merge(text string, j joiner) {
	for i := 1; i < len(c.symbols); i++ {
		c.offer(text, j, int32(i-1), int32(i))
	}
	for len(c.pairs) > 0 {
		p := c.pop()
		left, right := &c.symbols[p.left], &c.symbols[p.right]
		if left.start == left.end || right.start == right.end || right.end != p.end {
			continue
		}
		left.end, left.id, left.next = right.end, p.id, right.next
		right.start = right.end
		if right.next >= 0 {
			c.symbols[right.next].prev = p.left
		}
		c.offer(text, j, left.prev, p.left)
		c.offer(text, j, p.left, left.next)
	}
}

func (c *chain) offer(text string, j joiner, left, right int32) {
	if left < 0 || right < 0 {
		return
	}
	rank, id, ok := j.join(text, &c.symbols[left], &c.symbols[right])
	if ok {
		c.push(pair{rank: rank, left: left, right: right, end: c.symbols[right].end, id: id})
	}
}

func (p *pair) before(q *pair) bool { return p.rank < q.rank || p.rank == q.rank && p.left < q.left }

func (c *chain) push(p pair) {
	c.steps++
	c.pairs = append(c.pairs, p)
	i := len(c.pairs) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !p.before(&c.pairs[up]) {
			break
		}
		c.pairs[i] = c.pairs[up]
		i = up
	}
	c.pairs[i] = p
}

func (c *chain) pop() pair {
	c.steps++
	top, n := c.pairs[0], len(c.pairs)-1
	last := c.pairs[n]
	c.pairs = c.pairs[:n]
	if n == 0 {
		return top
	}
	i := 0
	for {
		kid := 2*i + 1
		if kid >= n {
			break
		}
		if kid+1 < n && c.pairs[kid+1].before(&c.pairs[kid]) {
			kid++
		}
		if !c.pairs[kid].before(&last) {
			break
		}
		c.pairs[i] = c.pairs[kid]
		i = kid
	}
	c.pairs[i] = last
	return top
}
