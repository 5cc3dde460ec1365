package kv

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is the obvious way to keep the same books: texts as strings, everything recomputed from scratch.
type model struct {
	blocks int
	open   map[Seq]*modelSeq
	cached map[string]*entry // by the whole text from position 0 to the block's end
	clock  int
}

type modelSeq struct {
	text      []int32
	table     []Block
	published int // blocks
}

type entry struct {
	block Block
	idle  int // when its last user closed; meaningless while used
}

// key is the text of the first n blocks, a character for each token.
func key(text []int32, n int) string {
	var b strings.Builder
	for _, id := range text[:n*BlockSize] {
		b.WriteByte('a' + byte(id))
	}
	return b.String()
}

// used is the set of blocks in tables of open sequences.
func (m *model) used() map[Block]bool {
	set := map[Block]bool{}
	for _, s := range m.open {
		for _, b := range s.table {
			set[b] = true
		}
	}
	return set
}

// lru lists the cached blocks that no open sequence uses, in the order in which they may be evicted: always
// the longest idle among those that no other cached text continues.
func (m *model) lru() []Block {
	left, used := map[string]*entry{}, m.used()
	for k, e := range m.cached {
		if !used[e.block] {
			left[k] = e
		}
	}
	var order []Block
	for len(left) > 0 {
		best := ""
		for k, e := range left {
			leaf := true
			for other := range m.cached {
				_, there := left[other]
				continues := other != k && strings.HasPrefix(other, k)
				leaf = leaf && !(continues && (there || used[m.cached[other].block]))
			}
			if leaf && (best == "" || e.idle < left[best].idle) {
				best = k
			}
		}
		order = append(order, left[best].block)
		delete(left, best)
	}
	return order
}

func (m *model) free() []Block {
	taken := m.used()
	for _, e := range m.cached {
		taken[e.block] = true
	}
	var free []Block
	for b := range Block(m.blocks) {
		if !taken[b] {
			free = append(free, b)
		}
	}
	return free
}

// machine drives a Cache and the model with the same calls.
type machine struct {
	c *Cache
	m *model
}

// texts draws from few distinct blocks, so that prefixes meet often, and ends anywhere in a block.
var texts = rapid.Custom(func(t *rapid.T) []int32 {
	var text []int32
	for range rapid.SampledFrom([]int{0, 1, 2, 3, 4}).Draw(t, "blocks") {
		text = append(text, slices.Repeat([]int32{rapid.SampledFrom([]int32{0, 0, 0, 1, 2}).Draw(t, "token")}, BlockSize)...)
	}
	return append(text, slices.Repeat([]int32{0}, rapid.SampledFrom([]int{0, 1, 63}).Draw(t, "rest"))...)
})

// pick chooses an open sequence, if there is one.
func (x *machine) pick(t *rapid.T) (Seq, bool) {
	if len(x.m.open) == 0 {
		return 0, false
	}
	var ids []Seq
	for id := range x.m.open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return rapid.SampledFrom(ids).Draw(t, "seq"), true
}

func (x *machine) open(t *rapid.T) {
	id, text := Seq(rapid.SampledFrom([]int{0, 1, 2, 3, 4}).Draw(t, "id")), texts.Draw(t, "text")
	if twin, ok := x.pick(t); ok && rapid.Bool().Draw(t, "same text") {
		text = slices.Clone(x.m.open[twin].text)
	}
	blocks, cached, err := x.c.Open(id, text)
	if x.m.open[id] != nil {
		require.EqualError(t, err, fmt.Sprintf("sequence %d is already open: close it first", id))
		return
	}
	require.NoError(t, err)
	var want []Block
	for n := 1; n*BlockSize < len(text) && x.m.cached[key(text, n)] != nil; n++ {
		want = append(want, x.m.cached[key(text, n)].block)
	}
	require.Equal(t, want, slices.Clone(blocks[:len(blocks):len(blocks)]))
	require.Equal(t, len(want)*BlockSize, cached)
	x.m.open[id] = &modelSeq{text: text, table: want, published: len(want)}
}

func (x *machine) grow(t *rapid.T) {
	id, ok := x.pick(t)
	if !ok {
		return
	}
	s := x.m.open[id]
	missing := max(0, (len(s.text)+BlockSize-1)/BlockSize-len(s.table))
	n := rapid.SampledFrom([]int{0, 1, 2, missing, missing}).Draw(t, "n")
	free, lru := x.m.free(), x.m.lru()
	got, err := x.c.Grow(id, n)
	if n > len(free)+len(lru) {
		require.ErrorIs(t, err, ErrFull)
		return
	}
	require.NoError(t, err)
	require.Len(t, got, n)
	if n <= len(free) {
		require.Subset(t, free, got)
	} else {
		evicted := lru[:n-len(free)]
		require.ElementsMatch(t, append(free, evicted...), got, "evicts the least recently used")
		for k, e := range x.m.cached {
			if slices.Contains(evicted, e.block) {
				delete(x.m.cached, k)
			}
		}
	}
	s.table = append(s.table, got...)
}

func (x *machine) publish(t *rapid.T) {
	id, ok := x.pick(t)
	if !ok {
		return
	}
	s := x.m.open[id]
	for len(s.text) < len(s.table)*BlockSize && rapid.Bool().Draw(t, "generate") {
		s.text = append(s.text, slices.Repeat([]int32{rapid.Int32Range(0, 1).Draw(t, "new")}, 32)...)
	}
	n := len(s.text)
	if rapid.Bool().Draw(t, "in part") {
		n = rapid.IntRange(0, n).Draw(t, "computed")
	}
	err := x.c.Publish(id, s.text[:n])
	if n > len(s.table)*BlockSize {
		require.ErrorContains(t, err, "grow it first")
		return
	}
	require.NoError(t, err)
	used := x.m.used()
	for ; (s.published+1)*BlockSize <= n; s.published++ {
		k, mine := key(s.text, s.published+1), s.table[s.published]
		if e := x.m.cached[k]; e == nil || !used[e.block] {
			x.m.cached[k] = &entry{block: mine}
		}
	}
}

func (x *machine) close(t *rapid.T) {
	id, ok := x.pick(t)
	if !ok {
		return
	}
	require.NoError(t, x.c.Close(id))
	s := x.m.open[id]
	delete(x.m.open, id)
	for i := s.published - 1; i >= 0; i-- {
		e := x.m.cached[key(s.text, i+1)]
		if x.m.used()[e.block] {
			continue // another sequence uses it
		}
		e.idle = x.m.clock
		x.m.clock++
		if heir, ok := x.heir(key(s.text, i+1), i); ok {
			e.block = heir
		}
	}
}

// heir finds an open sequence's private block with the same text: it takes the place of one that fell idle.
// Of several, the cache's choice is taken over, after a check that it is one of them.
func (x *machine) heir(k string, i int) (Block, bool) {
	var heirs []Block
	for _, s := range x.m.open {
		if s.published > i && key(s.text, i+1) == k {
			heirs = append(heirs, s.table[i])
		}
	}
	for _, d := range x.c.tree.nodes {
		if slices.Contains(heirs, d.block) && d.refs > 0 {
			return d.block, true
		}
	}
	return 0, false
}

func (x *machine) reset(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "rarely") > 0 {
		return
	}
	x.c.Reset()
	x.m = newModel(x.m.blocks)
}

// check compares the books after each call.
func (x *machine) check(t *rapid.T) {
	used := x.m.used()
	got := x.c.Stats()
	require.Equal(t, got.Blocks, got.Free+got.Cached+got.Used, "every block is in one state")
	require.Equal(t, len(used), got.Used)
	require.Equal(t, len(x.m.free()), got.Free)
	require.Equal(t, len(x.m.lru()), got.Cached)
	require.ElementsMatch(t, x.m.free(), x.c.free)
	holders := map[Block]string{}
	for id, s := range x.m.open {
		require.Equal(t, s.table, slices.Clone(x.c.Table(id)), "a table keeps its entries")
		for i, b := range s.table {
			text := fmt.Sprintf("private to %d", id)
			if i < s.published {
				text = key(s.text, i+1)
			}
			if other, ok := holders[b]; ok {
				require.Equal(t, other, text, "block %d is shared by different texts", b)
			}
			holders[b] = text
		}
	}
	x.checkRefs(t)
}

// checkRefs counts the users of every node again.
func (x *machine) checkRefs(t *rapid.T) {
	refs, twins := map[int32]int32{}, map[int32]int{}
	for _, s := range x.c.seqs {
		for i, n := range s.path {
			if x.c.tree.nodes[n].block == s.table[i] {
				refs[n]++
			} else {
				twins[n]++
			}
		}
	}
	for _, first := range x.c.tree.buckets {
		for n := first; n != noNode; n = x.c.tree.nodes[n].chain {
			require.Equal(t, refs[n], x.c.tree.nodes[n].refs)
			require.Len(t, x.c.tree.nodes[n].twins, twins[n])
		}
	}
}

func newModel(blocks int) *model {
	return &model{blocks: blocks, open: map[Seq]*modelSeq{}, cached: map[string]*entry{}}
}

func property(t *rapid.T) {
	blocks := rapid.SampledFrom([]int{0, 1, 2, 5, 8, 12, 16}).Draw(t, "blocks")
	x := &machine{c: New(blocks), m: newModel(blocks)}
	calls := []func(*rapid.T){x.open, x.open, x.grow, x.grow, x.publish, x.publish, x.close, x.reset}
	for range rapid.IntRange(100, 300).Draw(t, "calls") {
		calls[rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "call")](t)
		x.check(t)
	}
}

func TestLikeTheModel(t *testing.T) { rapid.Check(t, property) }

func FuzzLikeTheModel(f *testing.F) {
	f.Add([]byte{})
	random := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		seed := make([]byte, 32<<10)
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(rapid.MakeFuzz(property))
}
