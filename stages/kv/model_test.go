package kv

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
)

// model is the obvious way to keep the same books: texts as strings, everything recomputed from scratch.
type model struct {
	classes []Class
	open    map[Seq]*modelSeq
	cached  []map[string]*entryOf // by class, by the whole text from position 0 to the block's end
	clock   int
}

type modelSeq struct {
	salt      uint64
	text      []int32
	tables    []map[int]int32 // by class: block by its number in the text
	published int             // blocks
	done      int             // positions that were passed
}

type entryOf struct {
	block int32
	idle  int // when its last user let go of it; meaningless while used
}

func newModel(classes []Class) *model {
	m := &model{classes: classes, open: map[Seq]*modelSeq{}}
	for range classes {
		m.cached = append(m.cached, map[string]*entryOf{})
	}
	return m
}

// key is the salt and the text of the first n blocks, a character for each token.
func (s *modelSeq) key(n int) string {
	var b strings.Builder
	b.WriteByte('0' + byte(s.salt))
	for _, id := range s.text[:n*backend.BlockSize] {
		b.WriteByte('a' + byte(id))
	}
	return b.String()
}

// sees is the first block that the row at pos sees.
func sees(class Class, pos int) int {
	first := 0
	if class.Chunked {
		for class.Window > 0 && pos%class.Window != 0 {
			pos--
		}
		return pos / backend.BlockSize
	}
	for class.Window > 0 && (first+1)*backend.BlockSize <= pos-class.Window+1 {
		first++
	}
	return first
}

// used is the set of blocks in tables of open sequences.
func (m *model) used(class int) map[int32]bool {
	set := map[int32]bool{}
	for _, s := range m.open {
		for _, b := range s.tables[class] {
			set[b] = true
		}
	}
	return set
}

// lru lists the texts whose blocks no open sequence uses, in the order in which they may be evicted.
func (m *model) lru(class int) []string {
	used := m.used(class)
	var idle []string
	for k, e := range m.cached[class] {
		if !used[e.block] {
			idle = append(idle, k)
		}
	}
	slices.SortFunc(idle, func(a, b string) int { return m.cached[class][a].idle - m.cached[class][b].idle })
	return idle
}

func (m *model) free(class int) []int32 {
	taken := m.used(class)
	for _, e := range m.cached[class] {
		taken[e.block] = true
	}
	free := []int32{}
	for b := range int32(m.classes[class].Blocks) {
		if !taken[b] {
			free = append(free, b)
		}
	}
	return free
}

// longest is how many blocks of the text a new sequence finds.
func (m *model) longest(s *modelSeq) (found int) {
	for n := 1; n*backend.BlockSize < len(s.text); n++ {
		all := true
		for c, class := range m.classes {
			for i := sees(class, n*backend.BlockSize); i < n; i++ {
				all = all && m.cached[c][s.key(i+1)] != nil
			}
		}
		if all {
			found = n
		}
	}
	return found
}

// machine drives a Cache and the model with the same calls.
type machine struct {
	c *Cache
	m *model
}

// texts draws from few distinct blocks, so that prefixes meet often, and ends anywhere in a block.
var texts = rapid.Custom(func(t *rapid.T) []int32 {
	var text []int32
	for range rapid.SampledFrom([]int{0, 1, 2, 3, 4, 6}).Draw(t, "blocks") {
		token := rapid.SampledFrom([]int32{0, 0, 0, 1, 2}).Draw(t, "token")
		text = append(text, slices.Repeat([]int32{token}, backend.BlockSize)...)
	}
	return append(text, slices.Repeat([]int32{0}, rapid.SampledFrom([]int{0, 1, 63}).Draw(t, "rest"))...)
})

// pick chooses an open sequence, if there is one.
func (x *machine) pick(t *rapid.T) (Seq, bool) {
	ids := slices.Sorted(maps.Keys(x.m.open))
	if len(ids) == 0 {
		return 0, false
	}
	return rapid.SampledFrom(ids).Draw(t, "seq"), true
}

func (x *machine) open(t *rapid.T) {
	id := Seq(rapid.SampledFrom([]int{0, 1, 2, 3, 4}).Draw(t, "id"))
	s := &modelSeq{text: texts.Draw(t, "text"), salt: rapid.SampledFrom([]uint64{0, 0, 0, 1}).Draw(t, "salt")}
	if twin, ok := x.pick(t); ok && rapid.Bool().Draw(t, "same text") {
		s.text = slices.Clone(x.m.open[twin].text)
	}
	cached, err := x.c.Open(id, s.salt, s.text)
	if x.m.open[id] != nil {
		require.EqualError(t, err, fmt.Sprintf("sequence %d is already open: close it first", id))
		return
	}
	require.NoError(t, err)
	s.published = x.m.longest(s)
	s.done = s.published * backend.BlockSize
	require.Equal(t, s.done, cached)
	for c, class := range x.m.classes {
		s.tables = append(s.tables, map[int]int32{})
		for i := sees(class, s.done); i < s.published; i++ {
			s.tables[c][i] = x.m.cached[c][s.key(i+1)].block
		}
	}
	x.m.open[id] = s
}

// evict takes the block of a class that is idle longest. With one of a class that keeps all, those of the others that
// have the same text go.
func (x *machine) evict(t *rapid.T, class int) {
	k := x.m.lru(class)[0]
	if x.m.classes[class].Window == 0 {
		for other := range x.m.cached[class] {
			require.False(t, other != k && strings.HasPrefix(other, k), "only leaves are evicted")
		}
		for c := range x.m.classes {
			if x.m.classes[c].Window > 0 && slices.Contains(x.m.lru(c), k) {
				delete(x.m.cached[c], k)
			}
		}
	}
	delete(x.m.cached[class], k)
}

func (x *machine) grow(t *rapid.T) {
	id, ok := x.pick(t)
	if !ok {
		return
	}
	s := x.m.open[id]
	end := len(s.text) + rapid.SampledFrom([]int{0, 0, 16, 70}).Draw(t, "more")
	soon := s.done + rapid.SampledFrom([]int{1, 64, 130, 1000}).Draw(t, "soon")
	want, full := make([]int, len(x.m.classes)), false
	for c, class := range x.m.classes {
		reach := end
		if class.Window > 0 {
			reach = min(end, soon)
		}
		for i := sees(class, s.done); i*backend.BlockSize < reach; i++ {
			if _, ok := s.tables[c][i]; !ok {
				want[c]++
			}
		}
		full = full || want[c] > len(x.m.free(c))+len(x.m.lru(c))
	}
	err := x.c.Grow(id, end, soon)
	if full {
		require.ErrorIs(t, err, ErrFull)
		return
	}
	require.NoError(t, err)
	for c, n := range want {
		for len(x.m.free(c)) < n {
			x.evict(t, c)
		}
		got := x.c.Tables(id)[c]
		for i, b := range got.Blocks[len(got.Blocks)-n:] {
			require.Contains(t, x.m.free(c), b)
			s.tables[c][got.First+len(got.Blocks)-n+i] = b
		}
	}
}

// room is how many positions the sequence has blocks for in all classes.
func (x *machine) room(s *modelSeq) int {
	room := 1 << 20
	for c, class := range x.m.classes {
		reach := sees(class, s.done)
		for i := range s.tables[c] {
			reach = max(reach, i+1)
		}
		room = min(room, reach*backend.BlockSize)
	}
	return room
}

func (x *machine) publish(t *rapid.T) {
	id, ok := x.pick(t)
	if !ok {
		return
	}
	s := x.m.open[id]
	for len(s.text) < x.room(s) && rapid.Bool().Draw(t, "generate") {
		s.text = append(s.text, slices.Repeat([]int32{rapid.Int32Range(0, 1).Draw(t, "new")}, 32)...)
	}
	n := len(s.text)
	if rapid.Bool().Draw(t, "in part") {
		n = rapid.IntRange(0, n).Draw(t, "computed")
	}
	err := x.c.Publish(id, s.text[:n])
	if n > x.room(s) {
		require.ErrorContains(t, err, "grow it first")
		return
	}
	require.NoError(t, err)
	for ; (s.published+1)*backend.BlockSize <= n; s.published++ {
		for c := range x.m.classes {
			mine, ok := s.tables[c][s.published]
			k := s.key(s.published + 1)
			if e := x.m.cached[c][k]; ok && (e == nil || !x.m.used(c)[e.block]) {
				x.m.cached[c][k] = &entryOf{block: mine}
			}
		}
	}
}

func (x *machine) pass(t *rapid.T) {
	id, ok := x.pick(t)
	if !ok {
		return
	}
	s := x.m.open[id]
	done := rapid.IntRange(s.done, max(s.done, min(len(s.text), x.room(s)))).Draw(t, "done")
	gave, err := x.c.Pass(id, done)
	require.NoError(t, err)
	s.done = done
	any := false
	for c, class := range x.m.classes {
		for _, i := range slices.Sorted(maps.Keys(s.tables[c])) {
			if i < sees(class, done) {
				x.release(s, c, i)
				any = true
			}
		}
	}
	require.Equal(t, any, gave)
}

// release takes a block out of a sequence's table.
func (x *machine) release(s *modelSeq, c, i int) {
	b := s.tables[c][i]
	delete(s.tables[c], i)
	if i >= s.published {
		return
	}
	k := s.key(i + 1)
	e := x.m.cached[c][k]
	if e == nil || e.block != b || x.m.used(c)[b] {
		return // a twin, or another sequence uses it
	}
	if heir, ok := x.heir(k, c, i); ok {
		e.block = heir
		return
	}
	e.idle = x.m.clock
	x.m.clock++
}

// heir finds an open sequence's private block with the same text: it takes the place of one that fell idle.
// Of several, the cache's choice is taken over, after a check that it is one of them.
func (x *machine) heir(k string, c, i int) (int32, bool) {
	var heirs []int32
	for _, s := range x.m.open {
		if b, ok := s.tables[c][i]; ok && s.published > i && s.key(i+1) == k {
			heirs = append(heirs, b)
		}
	}
	for n := range x.c.tree.size {
		e := x.c.tree.at(c, n)
		if e.users > 0 && slices.Contains(heirs, e.block) {
			return e.block, true
		}
	}
	return 0, false
}

func (x *machine) close(t *rapid.T) {
	id, ok := x.pick(t)
	if !ok {
		return
	}
	require.NoError(t, x.c.Close(id))
	s := x.m.open[id]
	for c := range x.m.classes {
		numbers := slices.Sorted(maps.Keys(s.tables[c]))
		for _, i := range slices.Backward(numbers) {
			x.release(s, c, i)
		}
	}
	delete(x.m.open, id)
}

// fill opens a sequence of whole blocks for which its caller has the contents: publish shares them.
func (x *machine) fill(t *rapid.T) {
	id := Seq(rapid.SampledFrom([]int{0, 1, 2, 3, 4}).Draw(t, "id"))
	s := &modelSeq{text: texts.Draw(t, "text"), salt: rapid.SampledFrom([]uint64{0, 0, 0, 1}).Draw(t, "salt")}
	blocks := len(s.text) / backend.BlockSize
	s.text = s.text[:blocks*backend.BlockSize]
	s.done = len(s.text)
	full := false
	for c, class := range x.m.classes {
		s.tables = append(s.tables, map[int]int32{})
		full = full || blocks-sees(class, s.done) > len(x.m.free(c))+len(x.m.lru(c))
	}
	err := x.c.Fill(id, s.salt, blocks)
	switch {
	case x.m.open[id] != nil:
		require.ErrorContains(t, err, "already open")
		return
	case full:
		require.ErrorIs(t, err, ErrFull)
		return
	}
	require.NoError(t, err)
	for c := range x.m.classes {
		got := x.c.Tables(id)[c]
		for len(x.m.free(c)) < len(got.Blocks) {
			x.evict(t, c)
		}
		for i, b := range got.Blocks {
			require.Contains(t, x.m.free(c), b)
			s.tables[c][got.First+i] = b
		}
	}
	x.m.open[id] = s
}

func (x *machine) reset(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "rarely") > 0 {
		return
	}
	x.c.Reset()
	x.m = newModel(x.m.classes)
}

// check compares the books after each call.
func (x *machine) check(t *rapid.T) {
	var want Stats
	for c, class := range x.m.classes {
		used, free, idle := x.m.used(c), x.m.free(c), x.m.lru(c)
		want.Blocks += class.Blocks
		want.Free += len(free)
		want.Used += len(used)
		want.Cached += len(idle)
		require.Equal(t, class.Blocks, len(free)+len(used)+len(idle), "every block is in one state")
		require.ElementsMatch(t, free, x.c.free[Device][c])
		var blocks, list []int32
		for _, k := range idle {
			blocks = append(blocks, x.m.cached[c][k].block)
		}
		for n := x.c.tree.idle[Device][c].oldest; n != noNode; n = x.c.tree.at(c, n).newer {
			list = append(list, x.c.tree.at(c, n).block)
		}
		require.Equal(t, blocks, list, "the order in which they are evicted")
		x.checkTables(t, c)
	}
	got := x.c.Stats()
	got.Hits, got.Misses, got.Evictions = 0, 0, 0
	require.Equal(t, want, got)
	x.checkTree(t)
}

// checkTables: no block has two writers, and what a sequence sees next is there.
func (x *machine) checkTables(t *rapid.T, c int) {
	holders := map[int32]string{}
	for id, s := range x.m.open {
		got := x.c.Tables(id)[c]
		require.Len(t, got.Blocks, len(s.tables[c]))
		require.LessOrEqual(t, got.First, sees(x.m.classes[c], s.done), "what it sees is there")
		for i, b := range got.Blocks {
			require.Equal(t, s.tables[c][got.First+i], b, "a table keeps its entries")
			text := fmt.Sprintf("private to %d", id)
			if got.First+i < s.published {
				text = s.key(got.First + i + 1)
			}
			if other, ok := holders[b]; ok {
				require.Equal(t, other, text, "block %d is shared by different texts", b)
			}
			holders[b] = text
		}
	}
}

// checkTree counts the users of every node again, and the nodes.
func (x *machine) checkTree(t *rapid.T) {
	paths, children, nodes := map[int32]int32{}, map[int32]int32{}, 0
	for _, s := range x.c.seqs {
		for _, n := range s.path {
			paths[n]++
		}
	}
	for n := range x.live {
		nodes++
		children[x.c.tree.node(n).parent]++
	}
	for n := range x.live {
		d, blocks := x.c.tree.node(n), 0
		require.Equal(t, paths[n], d.paths)
		require.Equal(t, children[n], d.children)
		for c := range x.m.classes {
			e := x.c.tree.at(c, n)
			if e.block != noBlock {
				blocks++
			}
			require.True(t, e.block != noBlock || e.users == 0, "nobody uses nothing")
			require.True(t, e.users > 0 || len(e.twins) == 0, "twins of an idle block")
		}
		require.Positive(t, blocks+int(d.paths+d.children), "a node that nothing needs")
	}
	spare := 0
	for n := x.c.tree.spare; n != noNode; n = x.c.tree.node(n).chain {
		spare++
	}
	require.Equal(t, int(x.c.tree.size), nodes+spare, "no node is lost")
}

// live goes over the nodes of the tree.
func (x *machine) live(yield func(int32) bool) {
	for _, first := range x.c.tree.buckets {
		for n := first; n != noNode; n = x.c.tree.node(n).chain {
			if !yield(n) {
				return
			}
		}
	}
}

func property(t *rapid.T) {
	blocks := func(name string) int { return rapid.SampledFrom([]int{0, 1, 2, 5, 8, 12, 16}).Draw(t, name) }
	var classes []Class
	needsNothing := false // where a chunk begins, no block of it: that would make any text a hit
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "windows") {
		window := rapid.SampledFrom([]int{2, 64, 65, 66, 130, 300}).Draw(t, "window")
		chunked := rapid.Bool().Draw(t, "chunked")
		needsNothing = needsNothing || chunked
		classes = append(classes, Class{Blocks: blocks("blocks of a window"), Window: window, Chunked: chunked})
	}
	if len(classes) == 0 || needsNothing || rapid.Bool().Draw(t, "full") {
		classes = append(classes, Class{Blocks: blocks("blocks")})
	}
	x := &machine{c: New(classes...), m: newModel(classes)}
	calls := []func(*rapid.T){x.open, x.open, x.grow, x.grow, x.publish, x.publish, x.pass, x.close, x.fill, x.reset}
	for range rapid.IntRange(100, 300).Draw(t, "calls") {
		calls[rapid.IntRange(0, len(calls)-1).Draw(t, "call")](t)
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
