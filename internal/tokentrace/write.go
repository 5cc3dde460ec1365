package tokentrace

import (
	"bufio"
	"encoding/binary"
	"io"
	"slices"
)

// magic begins every trace; version follows it.
const (
	magic   = "sluice token trace\n"
	version = 5
)

// Writer writes a trace. Its methods keep none of their arguments. After an error all methods return it.
type Writer struct {
	out     *bufio.Writer
	experts []int  // by layer
	body    []byte // of the record that is being made
	err     error
}

// NewWriter begins a trace of a model.
func NewWriter(w io.Writer, m *Model) (*Writer, error) {
	t := &Writer{out: bufio.NewWriterSize(w, 1<<16)}
	_, t.err = t.out.WriteString(magic)
	t.body = append(t.body[:0], version)
	t.text(m.Name)
	t.number(uint64(m.Vocab))
	t.number(uint64(m.Vectors))
	t.number(uint64(len(m.Dense)))
	for _, bytes := range m.Dense {
		t.number(uint64(bytes))
	}
	t.number(uint64(len(m.Layers)))
	for _, l := range m.Layers {
		t.experts = append(t.experts, l.Experts)
		t.number(uint64(l.Experts))
		t.number(uint64(l.Used))
		t.number(uint64(l.Bytes))
	}
	t.record(kindModel)
	return t, t.Flush()
}

// Write adds an event.
func (t *Writer) Write(e Event) error {
	t.body = t.body[:0]
	switch e := e.(type) {
	case *Open:
		t.number(e.Sequence)
		t.number(e.Time)
		t.number(uint64(len(e.Prompt)))
		for _, id := range e.Prompt {
			t.number(uint64(uint32(id)))
		}
		t.text(string(e.Settings))
		t.text(e.Text)
		t.number(e.Client)
	case *Step:
		t.number(e.Time)
		t.number(uint64(len(e.Spans)))
		for _, s := range e.Spans {
			t.number(s.Sequence)
			t.number(uint64(s.Position))
			t.number(uint64(s.Rows))
			t.number(uint64(s.Proposed))
		}
		t.number(uint64(len(e.Tokens)))
		for _, id := range e.Tokens {
			t.number(uint64(uint32(id + 1)))
		}
		for _, n := range [...]int{e.Budget.Rows, e.Budget.Alone, e.Budget.Fixed} {
			t.number(uint64(n))
		}
	case *Foreseen:
		t.foreseen(e)
	case *Chosen:
		t.number(uint64(e.Layer))
		t.number(uint64(len(e.Experts)))
		for _, x := range e.Experts {
			t.number(uint64(x + 1))
		}
	case *Settled:
		t.number(e.Sequence)
		t.number(uint64(e.Accepted))
	case *Drawn:
		t.number(e.Sequence)
		t.number(uint64(uint32(e.Token)))
	case *End:
		t.number(e.Sequence)
		t.number(e.Time)
	}
	t.record(e.kind())
	return t.err
}

// foreseen appends, for each row, the experts with margins above the floor.
func (t *Writer) foreseen(e *Foreseen) {
	experts := t.experts[e.Layer]
	t.number(uint64(e.Layer))
	t.body = append(t.body, 0)
	if e.Late {
		t.body[len(t.body)-1] = 1
	}
	t.number(uint64(len(e.Margins) / experts))
	for row := range slices.Chunk(e.Margins, experts) {
		above := 0
		for _, m := range row {
			if m > MarginFloor {
				above++
			}
		}
		t.number(uint64(above))
		for expert, m := range row {
			if m > MarginFloor {
				t.number(uint64(expert))
				t.body = append(t.body, byte(int(m)-MarginFloor))
			}
		}
	}
}

// Flush writes buffered records to the underlying writer.
func (t *Writer) Flush() error {
	if t.err == nil {
		t.err = t.out.Flush()
	}
	return t.err
}

func (t *Writer) number(n uint64) { t.body = binary.AppendUvarint(t.body, n) }

func (t *Writer) text(s string) {
	t.number(uint64(len(s)))
	t.body = append(t.body, s...)
}

// record writes the buffered body as a record: kind, length, body.
func (t *Writer) record(kind byte) {
	if t.err != nil {
		return
	}
	var head [1 + binary.MaxVarintLen64]byte
	head[0] = kind
	n := 1 + binary.PutUvarint(head[1:], uint64(len(t.body)))
	if _, t.err = t.out.Write(head[:n]); t.err == nil {
		_, t.err = t.out.Write(t.body)
	}
}
