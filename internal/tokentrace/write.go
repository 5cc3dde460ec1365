package tokentrace

import (
	"encoding/binary"
	"io"
	"slices"
)

// magic begins every trace. version is that of the models that are written; sincePlain is the oldest one that is read,
// which has one model and does not say what it was computed by.
const (
	magic      = "sluice token trace\n"
	version    = 6
	sincePlain = 5
)

// Writer writes a trace, record by record. Its methods keep none of their arguments, and Write allocates nothing once
// it has seen events as large. After an error all methods return it.
type Writer struct {
	out     io.Writer
	experts map[int][]int // by layer, by the number of a model
	of      int           // the model that records are of; -1: the reader does not know it
	body    []byte        // of the record that is being made
	head    [1 + binary.MaxVarintLen64]byte
	err     error
}

// NewWriter begins a trace with models. Events are of the last one, until Of.
func NewWriter(w io.Writer, models ...*Model) (*Writer, error) {
	t := &Writer{out: w, experts: map[int][]int{}, of: -1}
	_, t.err = io.WriteString(w, magic)
	for _, m := range models {
		_ = t.Model(m)
	}
	return t, t.err
}

// Model adds a model, of which the events are that follow.
func (t *Writer) Model(m *Model) error {
	t.body = append(t.body[:0], version)
	t.text(m.Name)
	t.number(uint64(m.Vocab))
	t.number(uint64(m.Vectors))
	t.number(uint64(len(m.Dense)))
	for _, bytes := range m.Dense {
		t.number(uint64(bytes))
	}
	t.number(uint64(len(m.Layers)))
	experts := make([]int, 0, len(m.Layers))
	for _, l := range m.Layers {
		experts = append(experts, l.Experts)
		t.number(uint64(l.Experts))
		t.number(uint64(l.Used))
		t.number(uint64(l.Bytes))
	}
	t.number(uint64(m.Number))
	t.number(uint64(m.Began))
	t.number(uint64(len(m.Traits)))
	for _, x := range m.Traits {
		t.text(x.Name)
		t.text(x.Value)
	}
	t.record(kindModel)
	t.experts[m.Number], t.of = experts, m.Number
	return t.err
}

// Of says that the events that follow are of another model, which was added.
func (t *Writer) Of(model int) {
	if model == t.of {
		return
	}
	t.of = model
	t.body = t.body[:0]
	t.number(uint64(model))
	t.record(kindOf)
}

// Part says that what follows may be read without what was written: the next Of is written, whatever the model was.
func (t *Writer) Part() { t.of = -1 }

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
	case *Waited:
		t.number(e.Sequence)
		t.number(uint64(len(e.For)))
		for _, x := range e.For {
			t.number(uint64(x.Cause))
			t.number(x.Time)
		}
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
	experts := t.experts[t.of][e.Layer]
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
	t.head[0] = kind
	n := 1 + binary.PutUvarint(t.head[1:], uint64(len(t.body)))
	if _, t.err = t.out.Write(t.head[:n]); t.err == nil {
		_, t.err = t.out.Write(t.body)
	}
}
