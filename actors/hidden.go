package actors

// In this file are hidden states of a model, which its head guesses tokens from. A hidden state is a row of the
// residual stream after the last layer, or rows before several layers side by side: see spec.tapped. The head's
// sequence begins at the oldest row that is still known: the prompt before it need not be read, nor kept.

// mostHidden is how many of a sequence's newest hidden states are kept for its head.
const mostHidden = 128

// hidden is a sequence's newest hidden states. The device writes them while a step of the sequence is in flight, its
// scheduler reads them while none is.
type hidden struct {
	width    int
	rows     []float32 // by position, modulo mostHidden
	from, to int       // positions that are there
}

func newHidden(width int) *hidden {
	return &hidden{width: width, rows: make([]float32, mostHidden*width)}
}

// put keeps rows from a position on. Rows that were there from this position on are another text's.
func (h *hidden) put(pos int, rows []float32) {
	if pos > h.to || pos < h.from {
		h.from = pos
	}
	n := len(rows) / h.width
	for i := max(0, n-mostHidden); i < n; i++ {
		copy(h.at(pos+i), rows[i*h.width:][:h.width])
	}
	h.to = pos + n
	h.from = max(h.from, h.to-mostHidden)
}

func (h *hidden) at(pos int) []float32 { return h.rows[pos%mostHidden*h.width:][:h.width] }

// before is how many states are there of the positions before one, without a gap.
func (h *hidden) before(pos int) int {
	if pos > h.to {
		return 0
	}
	return max(0, pos-h.from)
}

// heard is what a draft knows of its target's hidden states, if it is of a head, and of its own.
type heard struct {
	base  int       // tokens of the target's text that the head's sequence lacks: its first ones
	first int       // position of the target whose hidden state is the first of rows
	rows  []float32 // one for each token that is new to the head: the hidden state before it
	own   []float32 // the hidden state that the head left for the token at ownAt
	ownAt int       // position in the head's own text
}

// listen copies the hidden states before the tokens of a text from one on.
func (t *heard) listen(h *hidden, from, tokens int) {
	t.first, t.rows = from-1, t.rows[:0]
	for pos := t.first; pos < tokens-1; pos++ {
		t.rows = append(t.rows, h.at(pos)...)
	}
}

// row is the target's hidden state before the token at a position of the head's text; nil: it is not known.
func (t *heard) row(pos, width int) []float32 {
	i := (t.base + pos - 1 - t.first) * width
	if i < 0 || i+width > len(t.rows) {
		return nil
	}
	return t.rows[i:][:width]
}

// grown returns memory for n numbers, which may be that of x.
func grown(x []float32, n int) []float32 {
	if cap(x) < n {
		return make([]float32, n)
	}
	return x[:n]
}

// hiddenBytes is the host memory for hidden states of a width, of a model and its head.
func (m *Model) hiddenBytes(width int) int64 {
	const usual, each = 32, 2 // sequences, and places of a state
	sequences := m.Sequences
	if sequences == 0 {
		sequences = usual
	}
	return int64(sequences) * each * mostHidden * int64(width) * 4
}
