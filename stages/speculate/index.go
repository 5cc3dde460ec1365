package speculate

// Bounds of an index: a place is a token, and what lies further back is forgotten.
const (
	leastPlaces = 1 << 10
	mostPlaces  = 1 << 16
	shortest    = 2  // tokens that are looked up
	longest     = 32 // tokens that are compared
	mostTried   = 48 // places that are compared; the latest ones
)

// index finds where the last tokens of a text stood before, in it or in another text. For each hash of two tokens it
// has the last place, and for each place the one before it of the same hash: 8 bytes a token, and a look-up of
// bounded time.
type index struct {
	heads []int32 // by hash: the last place plus 1; 0: none
	links []int32 // by place, modulo their number: the place before it of the same hash, plus 1; 0: none
	read  int     // places that are in it
}

// newIndex has room for so many tokens before it grows.
func newIndex(tokens int) index {
	n := leastPlaces
	for n < tokens && n < mostPlaces {
		n *= 2
	}
	return index{heads: make([]int32, n), links: make([]int32, n)}
}

// add takes in the first n places of a text that begins with what it has read.
func (x *index) add(text []int32, n int) {
	if n < x.read { // another text
		clear(x.heads)
		x.read = 0
	}
	if n > len(x.heads) && len(x.heads) < mostPlaces {
		*x = newIndex(2 * n)
	}
	for ; x.read < n; x.read++ {
		if x.read < shortest-1 {
			continue
		}
		head := &x.heads[x.hash(text[x.read-1], text[x.read])]
		x.links[x.read&(len(x.links)-1)] = *head
		*head = int32(x.read + 1) //nolint:gosec // positions of a context
	}
}

func (x *index) hash(a, b int32) int {
	h := (uint64(uint32(a))<<32 | uint64(uint32(b))) * 0x9e3779b97f4a7c15 //nolint:gosec // bits
	return int(h>>40) & (len(x.heads) - 1)                                //nolint:gosec // 24 bits
}

// find returns the place in text at which the longest match of tail's end ends, and the match's tokens; of equally
// long matches, the latest one's. 0 tokens: there is none.
func (x *index) find(text, tail []int32) (place, tokens int) {
	if len(tail) < shortest {
		return 0, 0
	}
	next := x.heads[x.hash(tail[len(tail)-2], tail[len(tail)-1])]
	tokens = shortest - 1
	for range mostTried {
		at := int(next) - 1
		if at < 0 || at < x.read-len(x.links) {
			break
		}
		if n := alike(text[:at+1], tail); n > tokens {
			if place, tokens = at, n; n == longest {
				break
			}
		}
		next = x.links[at&(len(x.links)-1)]
	}
	if tokens < shortest {
		return 0, 0
	}
	return place, tokens
}

// alike is how many tokens two texts have at their ends that are the same.
func alike(a, b []int32) (n int) {
	for n < longest && n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
