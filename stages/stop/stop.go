package stop

// Matcher searches one stream of text for stops. It is an Aho–Corasick automaton (Aho and Corasick, CACM 1975): each
// byte costs amortised constant time whatever the stops and the text. The zero value and a nil list stop nowhere.
//
// The stop that is complete first wins, so that the outcome does not depend on how the text is cut into pieces; if
// several are complete at the same byte, the longest wins, so that no part of a stop is emitted.
type Matcher struct {
	nodes   []node
	first   [256]int32 // the root's children by byte
	at      int32      // node of the longest end of the text that a stop begins with
	text    []byte     // text[sent:] is held back: as much as at's depth between calls
	sent    int
	found   int // length of the stop that ended the text
	stopped bool
}

// node is a prefix of a stop. Node 0 is the empty prefix, the root.
type node struct {
	char  byte
	child int32 // first child, and from there by next; the root's are in first
	next  int32
	fail  int32 // node of its longest proper end
	depth int32 // length in bytes
	match int32 // length of the longest stop that it ends in, 0 for none
}

// New makes a matcher for the stops; empty ones are ignored. If stops and text are UTF-8 and each piece ends with a
// whole character, so does all that Push returns. Memory is linear in the total length of the stops.
func New(stops []string) *Matcher {
	m := &Matcher{nodes: make([]node, 1)}
	for _, s := range stops {
		at := int32(0)
		for i := range len(s) {
			at = m.grow(at, s[i])
		}
		m.nodes[at].match = m.nodes[at].depth
	}
	m.link()
	return m
}

// grow returns the child of node at for a byte, which it adds if it is missing.
func (m *Matcher) grow(at int32, char byte) int32 {
	if to := m.child(at, char); to != 0 {
		return to
	}
	to := int32(len(m.nodes))
	m.nodes = append(m.nodes, node{char: char, next: m.nodes[at].child, depth: m.nodes[at].depth + 1})
	m.nodes[at].child = to
	if at == 0 {
		m.first[char] = to
	}
	return to
}

// child returns the child of a node for a byte; 0 if there is none, since the root is no child.
func (m *Matcher) child(at int32, char byte) int32 {
	if at == 0 {
		return m.first[char]
	}
	to := m.nodes[at].child
	for to != 0 && m.nodes[to].char != char {
		to = m.nodes[to].next
	}
	return to
}

// link sets fail and match of all nodes, shallow nodes first.
func (m *Matcher) link() {
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for to := m.nodes[at].child; to != 0; to = m.nodes[to].next {
			if at != 0 {
				m.nodes[to].fail = m.step(m.nodes[at].fail, m.nodes[to].char)
			}
			if m.nodes[to].match == 0 {
				m.nodes[to].match = m.nodes[m.nodes[to].fail].match
			}
			queue = append(queue, to)
		}
	}
}

// step returns the node after one more byte of the text.
func (m *Matcher) step(at int32, char byte) int32 {
	for {
		if to := m.child(at, char); to != 0 || at == 0 {
			return to
		}
		at = m.nodes[at].fail
	}
}

// Push takes the next piece of text and returns the text that can be emitted: all before a stop that is now complete,
// or else all that cannot be the beginning of one. After a stop it returns nothing more. emit is valid until the next
// call, and as long as piece is not changed.
func (m *Matcher) Push(piece []byte) (emit []byte, stopped bool) {
	if m.stopped {
		return nil, true
	}
	if len(m.nodes) <= 1 {
		return piece, false
	}
	if m.sent > len(m.text)/2 { // at least as much was sent since the last move as is moved now
		m.text = m.text[:copy(m.text, m.text[m.sent:])]
		m.sent = 0
	}
	for _, char := range piece {
		m.text = append(m.text, char)
		m.at = m.step(m.at, char)
		if n := int(m.nodes[m.at].match); n > 0 {
			m.stopped, m.found = true, n
			return m.send(len(m.text) - n), true
		}
	}
	return m.send(len(m.text) - int(m.nodes[m.at].depth)), false
}

// Found returns the stop that ended the text; "" if none did.
func (m *Matcher) Found() string {
	if !m.stopped {
		return ""
	}
	return string(m.text[len(m.text)-m.found:])
}

// Flush ends the text and returns the text that was held back, nothing after a stop. The matcher can then search
// another text.
func (m *Matcher) Flush() []byte {
	var held []byte
	if !m.stopped {
		held = m.send(len(m.text))
	}
	m.text, m.sent, m.at, m.stopped = m.text[:0], 0, 0, false
	return held
}

// send returns the held text up to a position.
func (m *Matcher) send(end int) []byte {
	start := m.sent
	m.sent = end
	return m.text[start:end:end]
}
