package route

import (
	"hash/fnv"
	"slices"
	"time"
)

// Member is what a member of a cluster says of itself.
type Member struct {
	Name    string
	Drained bool // it gets nothing new
	Full    bool // it has as many requests as it takes
	Models  []Model

	since *since // what was sent to it and is not in what it said
}

// Model is a model that a member knows, as it is there.
type Model struct {
	Name  string
	Load  time.Duration // until it is loaded; 0 if it is
	Wait  time.Duration // until a prompt that comes now is begun
	Token time.Duration // to read one token of a prompt
	Each  time.Duration // from one token of an answer to the next, with one more answer
	Known Sketch        // prefixes that are in the cache, or will be when the prompts that wait are read
}

// Request is what is known of a request before it is answered.
type Request struct {
	Model  string
	Keys   []Key    // of the whole blocks of its prompt, from the first one on
	Block  int      // tokens of a block
	Prompt int      // tokens
	Answer int      // tokens that are expected; 0: not known, and then they count for nothing
	Not    []string // names of members that failed to answer it
}

// Choice is where a request goes, and what is expected of it there.
type Choice struct {
	Member string
	Cached int           // tokens of the prompt that need not be read
	First  time.Duration // until the first token of the answer
	read   time.Duration // of it, how long the prompt is read
}

// readWeight is how much dearer it is to read than to wait as long: what is read holds up all who share the member, and
// its blocks drive out others. TestReplay's conversations gain little from more, and with 2 answer a twentieth less.
const readWeight = 3

// Choose returns the member that answers a request at the least cost: waiting, loading, reading what it does not have,
// and writing the answer. Between equals the first block decides, so that prompts which begin alike meet although no
// member has them yet.
func Choose(members []Member, r *Request) (Choice, error) {
	var best Choice
	var least time.Duration
	var rank uint64
	for i := range members {
		m := &members[i]
		if !m.takes(r) {
			continue
		}
		c, cost := m.offer(r)
		order := affinity(m.Name, r)
		if best.Member == "" || cost < least || cost == least && order > rank {
			best, least, rank = c, cost, order
		}
	}
	if best.Member == "" {
		return Choice{}, refuse(members, r)
	}
	return best, nil
}

// takes says whether a member may have a request.
func (m *Member) takes(r *Request) bool {
	return m.model(r.Model) != nil && !m.Drained && !m.Full && !slices.Contains(r.Not, m.Name)
}

func (m *Member) model(name string) *Model {
	at := slices.IndexFunc(m.Models, func(o Model) bool { return o.Name == name })
	if at < 0 {
		return nil
	}
	return &m.Models[at]
}

// offer is what a request would have at a member that takes it, and what that costs.
func (m *Member) offer(r *Request) (c Choice, cost time.Duration) {
	at := m.model(r.Model)
	c = Choice{Member: m.Name, Cached: m.cached(at, r)}
	c.read = times(r.Prompt-c.Cached, at.Token)
	wait := at.Load + at.Wait + m.since.wait()
	c.First = wait + c.read
	return c, wait + readWeight*c.read + times(r.Answer, at.Each)
}

// times is n times d, at most longest.
func times(n int, d time.Duration) time.Duration {
	if d > 0 && time.Duration(n) > longest/d {
		return longest
	}
	return time.Duration(n) * d
}

// cached is how many tokens of a prompt a member has. The last one is always read: its logits are wanted.
func (m *Member) cached(at *Model, r *Request) int {
	n := 0
	for _, k := range r.Keys {
		if !at.Known.Has(k) && !m.since.has(at.Name, k) {
			break
		}
		n += r.Block
	}
	return max(min(n, r.Prompt-1), 0)
}

// affinity orders members for prompts that begin alike, in another way for each beginning.
func affinity(member string, r *Request) uint64 {
	h := fnv.New64a()
	first := Key(0)
	if len(r.Keys) > 0 {
		first = r.Keys[0]
	}
	var b [8]byte
	for i := range b {
		b[i] = byte(first >> (8 * i))
	}
	h.Write(b[:])
	h.Write([]byte(member))
	x := h.Sum64()
	x ^= x >> 32 // the last bytes of a name alone would order members alike for all beginnings
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}
