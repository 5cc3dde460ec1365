package route

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/kv"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

const block = 64

// turn is a message of a conversation and its answer.
type turn struct {
	says   []int32
	answer []int32
	think  time.Duration // after the answer before
}

// conversation begins with a system prompt that others share. Each turn asks with all that was said before.
type conversation struct {
	turns []turn
	at    int
	text  []int32
}

// conversations generates 200 of them over 8 system prompts of 2000 to 4000 tokens, which begin within half a minute.
func conversations() (all []*conversation) {
	rng := rand.New(rand.NewPCG(38, 200))
	tokens := func(least, most int) []int32 {
		ids := make([]int32, least+rng.IntN(most-least+1))
		for i := range ids {
			ids[i] = rng.Int32N(32000)
		}
		return ids
	}
	var systems [8][]int32
	for i := range systems {
		systems[i] = tokens(2000, 4000)
	}
	for range 200 {
		c := &conversation{}
		for i := range 3 + rng.IntN(4) {
			wait := 2*time.Second + time.Duration(rng.Int64N(int64(6*time.Second)))
			if i == 0 {
				wait = time.Duration(rng.Int64N(int64(30 * time.Second)))
			}
			c.turns = append(c.turns, turn{tokens(40, 200), tokens(40, 160), wait})
		}
		c.text = append(c.text, systems[rng.IntN(len(systems))]...)
		all = append(all, c)
	}
	return all
}

// The cost model of a member: a step reads so many tokens of prompts and writes one of each answer.
const (
	stepTime   = 8 * time.Millisecond
	readTime   = 500 * time.Microsecond // a token of a prompt
	writeTime  = 150 * time.Microsecond // a token of an answer
	stepRows   = 512
	most       = 16   // answers at a time
	cacheSize  = 1000 // blocks of one member
	reportTime = 200 * time.Millisecond
)

// asked is a request of the simulation.
type asked struct {
	c     *conversation
	keys  []kv.Key // of its prompt and answer
	came  time.Duration
	left  int // tokens of the prompt that are to be read
	wrote int
}

// simulated is a member in virtual time.
type simulated struct {
	name    string
	waiting []*asked
	running []*asked
	rows    []int          // of those that are running, read in this step
	cache   map[kv.Key]int // when a block was used last
	used    int            // counts uses
	ends    time.Duration  // of its step; 0: it has none
	served  int            // requests
}

// admit opens requests that wait, as far as there is room: what is cached of them is known now.
func (m *simulated) admit(w *world) {
	for len(m.waiting) > 0 && len(m.running) < most {
		q := m.waiting[0]
		m.waiting = m.waiting[1:]
		q.left = m.lacks(q)
		known := len(q.c.text) - q.left
		for _, k := range q.keys[:known/block] {
			m.use(k)
		}
		w.cached += known
		m.running = append(m.running, q)
	}
}

// lacks is how many tokens of a prompt are to be read.
func (m *simulated) lacks(q *asked) int {
	left := len(q.c.text)
	for _, k := range q.keys {
		if _, ok := m.cache[k]; !ok || left <= block {
			break
		}
		left -= block
	}
	return left
}

func (m *simulated) use(k kv.Key) {
	m.used++
	m.cache[k] = m.used
}

// step begins the next step, if there is anything to do.
func (m *simulated) step(w *world) {
	if m.ends != 0 {
		return
	}
	if m.admit(w); len(m.running) == 0 {
		return
	}
	took, rows := stepTime, stepRows
	m.rows = m.rows[:0]
	for _, q := range m.running {
		n := min(q.left, rows)
		rows -= n
		took += time.Duration(n) * readTime
		if q.left == 0 {
			took += writeTime
		}
		m.rows = append(m.rows, n)
	}
	m.ends = w.now + took
}

// stepped ends a step.
func (m *simulated) stepped(w *world) {
	m.ends = 0
	for i, q := range m.running {
		if wrote := q.left == m.rows[i]; !wrote {
			q.left -= m.rows[i]
			continue
		}
		if q.left = 0; q.wrote == 0 {
			w.first = append(w.first, w.now-q.came)
			for _, k := range q.keys[:len(q.c.text)/block] {
				m.use(k)
			}
		}
		q.wrote++
	}
	m.running = slices.DeleteFunc(m.running, func(q *asked) bool {
		said := &q.c.turns[q.c.at]
		if q.wrote < len(said.answer) {
			return false
		}
		w.tokens += q.wrote
		for _, k := range q.keys {
			m.use(k)
		}
		q.c.text = append(q.c.text, said.answer...)
		q.c.at++
		w.next(q.c)
		return true
	})
	for len(m.cache) > cacheSize {
		m.drop()
	}
}

// drop gives up the block that was used longest ago.
func (m *simulated) drop() {
	least, at := m.used+1, kv.Key{}
	for k, used := range m.cache {
		if used < least {
			least, at = used, k
		}
	}
	delete(m.cache, at)
}

// says is what the member would gossip.
func (m *simulated) says() Member {
	at := Model{Name: "m", Token: readTime, Each: stepTime + time.Duration(len(m.running)+1)*writeTime}
	var keys []Key
	for k := range m.cache {
		keys = append(keys, KeyOf(k))
	}
	for i, q := range slices.Concat(m.running, m.waiting) {
		if i < len(m.running) {
			at.Wait += time.Duration(q.left) * readTime
		} else {
			at.Wait += time.Duration(m.lacks(q))*readTime + 100*at.Each/most // for a place
		}
		for _, k := range q.keys[:len(q.c.text)/block] {
			keys = append(keys, KeyOf(k))
		}
	}
	at.Known = SketchOf(keys)
	return Member{Name: m.name, Models: []Model{at}}
}

// world is the whole simulation.
type world struct {
	now     time.Duration
	members []*simulated
	due     []due // turns that will be asked
	asked   int
	first   []time.Duration // until the first token of each request
	tokens  int             // of answers
	prompts int             // tokens
	cached  int             // of these
}

type due struct {
	at time.Duration
	c  *conversation
}

func (w *world) next(c *conversation) {
	if c.at < len(c.turns) {
		w.due = append(w.due, due{w.now + c.turns[c.at].think, c})
	}
}

// policy chooses a member's number.
type policy func(w *world, q *asked) int

func roundRobin(w *world, _ *asked) int { return w.asked % len(w.members) }

func leastLoaded(w *world, _ *asked) (at int) {
	for i, m := range w.members {
		if n := w.members[at]; len(m.waiting)+len(m.running) < len(n.waiting)+len(n.running) {
			at = i
		}
	}
	return at
}

// ours routes by what members said up to reportTime ago.
func ours(t *testing.T) policy {
	var table Table
	heard := -reportTime
	return func(w *world, q *asked) int {
		if w.now-heard >= reportTime {
			heard = w.now - w.now%reportTime
			for _, m := range w.members {
				require.NoError(t, table.Hear(m.says()))
			}
		}
		r := &Request{Model: "m", Block: block, Prompt: len(q.c.text), Answer: 100}
		for _, k := range q.keys[:len(q.c.text)/block] {
			r.Keys = append(r.Keys, KeyOf(k))
		}
		c, err := table.Send(r)
		require.NoError(t, err)
		return slices.IndexFunc(w.members, func(m *simulated) bool { return m.name == c.Member })
	}
}

// play asks everything there is to ask.
func play(p policy) *world {
	w := &world{}
	for i := range 3 {
		w.members = append(w.members, &simulated{name: fmt.Sprint("member-", i), cache: map[kv.Key]int{}})
	}
	for _, c := range conversations() {
		w.next(c)
	}
	for {
		var at *simulated
		for _, m := range w.members {
			if m.ends != 0 && (at == nil || m.ends < at.ends) {
				at = m
			}
		}
		next := -1
		for i := range w.due {
			if next < 0 || w.due[i].at < w.due[next].at {
				next = i
			}
		}
		switch {
		case next >= 0 && (at == nil || w.due[next].at <= at.ends):
			w.now = w.due[next].at
			at = w.ask(p, w.due[next].c)
			w.due = slices.Delete(w.due, next, next+1)
		case at != nil:
			w.now = at.ends
			at.stepped(w)
		default:
			return w
		}
		at.step(w)
	}
}

func (w *world) ask(p policy, c *conversation) *simulated {
	said := &c.turns[c.at]
	c.text = append(c.text, said.says...)
	q := &asked{c: c, came: w.now, left: len(c.text), keys: kv.Keys(0, slices.Concat(c.text, said.answer))}
	m := w.members[p(w, q)]
	m.waiting = append(m.waiting, q)
	m.served++
	w.asked++
	w.prompts += len(c.text)
	return m
}

// mean is the mean time until a first token, in seconds.
func (w *world) mean() float64 {
	sum := time.Duration(0)
	for _, d := range w.first {
		sum += d
	}
	return (sum / time.Duration(len(w.first))).Seconds()
}

func (w *world) speed() float64 { return float64(w.tokens) / w.now.Seconds() }

func (w *world) line(name string) string {
	slices.Sort(w.first)
	served := make([]string, len(w.members))
	for i, m := range w.members {
		served[i] = fmt.Sprint(m.served)
	}
	return fmt.Sprintf("%-12s %8.2f %8.2f %8.2f %10.0f %8.0f %%  %s\n", name, w.mean(), w.first[len(w.first)/2].Seconds(),
		w.first[len(w.first)*99/100].Seconds(), w.speed(), 100*float64(w.cached)/float64(w.prompts), strings.Join(served, " "))
}

// TestReplay: conversations that share prompts, over three members, by three policies. Ours answers at least twice as
// soon as round robin, and 1.3 times as much.
func TestReplay(t *testing.T) {
	robin, least, our := play(roundRobin), play(leastLoaded), play(ours(t))
	const path = "testdata/replay.txt"
	text := fmt.Sprintf("%-12s %8s %8s %8s %10s %10s  %s\n", "", "first s", "median", "99 %", "tokens/s", "cached", "requests") +
		robin.line("round robin") + least.line("least loaded") + our.line("ours")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
	require.Equal(t, robin.tokens, our.tokens)
	for _, other := range []*world{robin, least} {
		require.GreaterOrEqual(t, other.mean(), 2*our.mean())
		require.GreaterOrEqual(t, our.speed(), 1.3*other.speed())
	}
}
