package expertcache

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var kinds = []Kind{LRU, LFU, SLRU, Ours, Belady}

// misses runs the uses of layers, [layer][time], through slots, as many for each layer.
func misses(t require.TestingT, k Kind, experts, slots int, uses [][][]int32) (missed, all int) {
	p := New(k, slices.Repeat([]int{experts}, len(uses)))
	there := make([][]int32, len(uses))
	for l := range uses {
		if k == Belady {
			p.Foresee(l, uses[l])
		}
	}
	for time := range uses[0] {
		for l := range uses {
			need := uses[l][time]
			p.Touch(l, need)
			for _, e := range need {
				all++
				if slices.Contains(there[l], e) {
					continue
				}
				missed++
				if len(there[l]) == slots {
					among := slices.DeleteFunc(slices.Clone(there[l]), func(x int32) bool { return slices.Contains(need, x) })
					v := p.Victim(l, among)
					require.Contains(t, among, int32(v), "what may not leave stays")
					p.Leave(l, v)
					there[l] = slices.DeleteFunc(there[l], func(x int32) bool { return int(x) == v })
				}
				there[l] = append(there[l], e)
				p.Arrive(l, int(e))
			}
		}
	}
	return missed, all
}

// distinct draws n experts by a distribution.
func distinct(n int, draw func() int) (experts []int32) {
	for len(experts) < n {
		if e := int32(draw()); !slices.Contains(experts, e) {
			experts = append(experts, e)
		}
	}
	slices.Sort(experts)
	return experts
}

// zipf is experts of which few are popular; every so often others are.
func zipf(r *rand.Rand, experts, used, times, fashion int) (uses [][]int32) {
	var names []int
	for i := range times {
		if i%fashion == 0 {
			names = r.Perm(experts)
		}
		uses = append(uses, distinct(used, func() int {
			return names[int(math.Pow(float64(experts), r.Float64()))-1]
		}))
	}
	return uses
}

// cycle goes round all experts.
func cycle(experts, used, times int) (uses [][]int32) {
	for i := range times {
		j := 0
		uses = append(uses, distinct(used, func() int { j++; return (i*used + j) % experts }))
	}
	return uses
}

// TestBelady: nothing misses less than what knows the future, whatever is used.
func TestBelady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		experts := rapid.IntRange(2, 12).Draw(t, "experts")
		used := rapid.IntRange(1, experts-1).Draw(t, "used")
		slots := rapid.IntRange(used, experts-1).Draw(t, "slots")
		var uses [][][]int32
		for range rapid.IntRange(1, 3).Draw(t, "layers") {
			uses = append(uses, zipf(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), experts, used, 60, 20))
		}
		least, _ := misses(t, Belady, experts, slots, uses)
		for _, k := range kinds {
			missed, _ := misses(t, k, experts, slots, uses)
			require.GreaterOrEqual(t, missed, least, "%v", k)
		}
	})
}

// TestCycle: where a cycle does not fit, what was used longest ago is needed next, and LRU has no hits at all. Ours
// comes close to the best that there is; also where every step uses all experts, as when long prompts are read.
func TestCycle(t *testing.T) {
	for _, c := range []struct{ experts, used, slots int }{{20, 4, 16}, {32, 4, 16}, {32, 1, 31}, {128, 8, 64}} {
		uses := [][][]int32{cycle(c.experts, c.used, 2000)}
		missed, all := misses(t, LRU, c.experts, c.slots, uses)
		require.Equal(t, all, missed)
		best, _ := misses(t, Belady, c.experts, c.slots, uses)
		missed, _ = misses(t, Ours, c.experts, c.slots, uses)
		require.Less(t, float64(all-best)*0.95, float64(all-missed), "%v", c)
	}
}

// TestFashion: on popularity that changes, ours misses less than the others. Where it never does, counting all uses is
// the best that there is, and ours comes close.
func TestFashion(t *testing.T) {
	for _, fashion := range []int{50, 400, 5000} {
		var uses [][][]int32
		for l := range 4 {
			uses = append(uses, zipf(rand.New(rand.NewPCG(uint64(l), 1)), 64, 6, 5000, fashion))
		}
		least, all := misses(t, Ours, 64, 24, uses)
		for _, k := range []Kind{LRU, LFU, SLRU} {
			missed, _ := misses(t, k, 64, 24, uses)
			t.Logf("fashion of %d: %v misses %d of %d, ours %d", fashion, k, missed, all, least)
			if k == LFU && fashion == 5000 {
				missed += missed / 25
			}
			require.Less(t, least, missed, "fashion of %d: %v", fashion, k)
		}
	}
}

// phrases is experts that follow upon one another in a few fixed ways.
func phrases(r *rand.Rand, experts, used, phrases, length, times int) (uses [][]int32) {
	book := make([][][]int32, phrases)
	for i := range book {
		for range length {
			book[i] = append(book[i], distinct(used, func() int { return r.IntN(experts) }))
		}
	}
	for len(uses) < times {
		uses = append(uses, book[r.IntN(phrases)]...)
	}
	return uses
}

// TestSuccession: what was used last says what will be used soon.
func TestSuccession(t *testing.T) {
	uses := [][][]int32{phrases(rand.New(rand.NewPCG(3, 3)), 32, 4, 4, 8, 6000)}
	ours, _ := misses(t, Ours, 32, 16, uses)
	for _, k := range []Kind{LRU, LFU, SLRU} {
		missed, _ := misses(t, k, 32, 16, uses)
		t.Logf("%v misses %d, ours %d", k, missed, ours)
		require.Less(t, float64(ours), 0.85*float64(missed), "%v", k)
	}
}

// TestAverages: uses that count more and more, and all of them less now and then, are averages that forget.
func TestAverages(t *testing.T) {
	r := newReuse([]int{8})
	var plain, full [memories]float64
	draw := rand.New(rand.NewPCG(5, 5))
	for time := range 5000 {
		used := draw.IntN(3) == 0
		r.touch(0, map[bool][]int32{true: {2, 5}, false: {2}}[used])
		for i := range plain {
			plain[i], full[i] = plain[i]*memory[i], full[i]*memory[i]+1-memory[i]
			if used {
				plain[i] += 1 - memory[i]
			}
			m := &r.layers[0]
			require.InDelta(t, plain[i]/full[i], m.of[5][i]/m.full[i], 1e-12, "time %d, memory %d", time, i)
		}
	}
}

// TestSame: the same calls give the same answers.
func TestSame(t *testing.T) {
	uses := [][][]int32{zipf(rand.New(rand.NewPCG(7, 7)), 32, 4, 500, 100)}
	for _, k := range kinds {
		first, _ := misses(t, k, 32, 12, uses)
		second, _ := misses(t, k, 32, 12, uses)
		require.Equal(t, first, second, "%v", k)
	}
}

// TestOrders fixes whom each policy gives up, after 1, 2, 3 and again 1 were used.
func TestOrders(t *testing.T) {
	for k, want := range map[Kind]int{LRU: 2, LFU: 3, SLRU: 2, Ours: 2, Belady: 1} {
		p := New(k, []int{6})
		if k == Belady {
			p.Foresee(0, [][]int32{{1}, {2}, {3}, {1}, {3}, {2}})
		}
		for _, e := range []int32{1, 2, 3, 1} {
			p.Touch(0, []int32{e})
			if p.layers[0].arrived[e] == 0 {
				p.Arrive(0, int(e))
			}
		}
		require.Equal(t, want, p.Victim(0, []int32{1, 2, 3}), "%v", k)
	}
}

// TestNoAlloc: a step's choice allocates nothing.
func TestNoAlloc(t *testing.T) {
	p := New(Ours, []int{16})
	need, among := []int32{3, 4}, []int32{1, 2, 9}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		p.Touch(0, need)
		p.Arrive(0, p.Victim(0, among))
	}))
}

func TestKinds(t *testing.T) {
	for _, k := range kinds {
		parsed, err := ParseKind(k.String())
		require.NoError(t, err)
		require.Equal(t, k, parsed)
	}
	_, err := ParseKind("")
	require.EqualError(t, err, `policy "": want lru, lfu, slru, ours or belady`)
}
