package tokentrace

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Reader reads a trace.
type Reader struct {
	Model Model // of which the last event was; at first the first one
	all   map[int]*Model
	in    *bufio.Reader
	at    int64 // byte where the next record begins
	body  bytes.Buffer
	left  []byte // of the record that is being taken apart
	wrong string // what of it was not as it must be
}

const (
	mostBody = 1 << 28 // bytes of a record
	mostID   = math.MaxInt32
	// mostExperts is how many experts a layer may have: more than any model has, and not so many that a prediction for few
	// rows would take much memory.
	mostExperts = 1 << 14
)

// NewReader returns a reader of a trace, whose first record it reads.
func NewReader(r io.Reader) (*Reader, error) {
	t := &Reader{in: bufio.NewReaderSize(r, 1<<16), at: int64(len(magic)), all: map[int]*Model{}}
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(t.in, begin); err != nil || string(begin) != magic {
		return nil, errors.New("this is no token trace: it does not begin as those that --record writes")
	}
	kind, err := t.record()
	if err != nil {
		return nil, err
	}
	if kind != kindModel || len(t.left) == 0 {
		return nil, fmt.Errorf("the first record of the trace is of kind %d: want the model's, %d", kind, kindModel)
	}
	return t, t.model()
}

// model reads the record of a model.
func (t *Reader) model() error {
	v := t.left[0]
	if err := known(v); err != nil {
		return err
	}
	t.left = t.left[1:]
	m := &Model{Name: t.text(), Vocab: int(t.number(mostID)), Vectors: int64(t.number(math.MaxInt64))}
	for range t.count() {
		m.Dense = append(m.Dense, int64(t.number(math.MaxInt64)))
	}
	for range t.count() {
		l := Layer{Experts: int(t.number(mostExperts)), Used: int(t.number(mostExperts))}
		l.Bytes = int64(t.number(math.MaxInt64))
		if l.Used < 1 || l.Used > l.Experts {
			t.fault("%d experts used of %d", l.Used, l.Experts)
		}
		m.Layers = append(m.Layers, l)
	}
	if v > sincePlain {
		m.Number, m.Began = int(t.number(mostID)), int64(t.number(math.MaxInt64))
		for range t.count() {
			m.Traits = append(m.Traits, Trait{t.text(), t.text()})
		}
	}
	err := t.end(kindModel)
	if err == nil {
		t.all[m.Number], t.Model = m, *m
	}
	return err
}

// of reads of which model the events are that follow.
func (t *Reader) of() error {
	n := int(t.number(mostID))
	m := t.all[n]
	if m == nil {
		t.fault("there is no model %d", n)
	}
	err := t.end(kindOf)
	if err == nil {
		t.Model = *m
	}
	return err
}

// known returns an error for a trace of another version.
func known(v byte) error {
	switch {
	case v == version, v == sincePlain:
		return nil
	case v > 0 && v < sincePlain:
		return fmt.Errorf("the trace is of version %d, whose tokens were drawn by weights of floating point: this program "+
			"draws by whole numbers, and reads versions %d and %d: record it again", v, sincePlain, version)
	}
	return fmt.Errorf("the trace is of version %d, and this program reads versions %d and %d: record it again", v,
		sincePlain, version)
}

// Next returns the next event, or io.EOF at the end. The event belongs to the caller.
func (t *Reader) Next() (Event, error) {
	kind, err := t.record()
	for err == nil && (kind == kindOf || kind == kindModel && len(t.left) > 0) {
		if err = t.aside(kind); err == nil {
			kind, err = t.record()
		}
	}
	if err != nil {
		return nil, err
	}
	var e Event
	switch kind {
	case kindOpen:
		e = t.open()
	case kindStep:
		e = t.step()
	case kindChosen:
		e = t.chosen()
	case kindForeseen:
		e = t.foreseen()
	case kindSettled:
		e = &Settled{Sequence: t.number(math.MaxUint64), Accepted: int(t.number(mostID))}
	case kindWaited:
		e = t.waited()
	case kindDrawn:
		e = &Drawn{Sequence: t.number(math.MaxUint64), Token: int32(t.number(mostID))}
	case kindEnd:
		e = &End{Sequence: t.number(math.MaxUint64), Time: t.number(math.MaxUint64)}
	default:
		t.fault("the kind is not known")
	}
	return e, t.end(kind)
}

// aside reads a record that is no event.
func (t *Reader) aside(kind byte) error {
	if kind == kindOf {
		return t.of()
	}
	return t.model()
}

func (t *Reader) waited() *Waited {
	e := &Waited{Sequence: t.number(math.MaxUint64)}
	for range t.count() {
		e.For = append(e.For, Spent{Cause: int(t.number(math.MaxUint8)), Time: t.number(math.MaxUint64)})
	}
	return e
}

func (t *Reader) open() *Open {
	e := &Open{Sequence: t.number(math.MaxUint64), Time: t.number(math.MaxUint64)}
	for range t.count() {
		e.Prompt = append(e.Prompt, int32(t.number(mostID)))
	}
	if s := t.text(); s != "" {
		e.Settings = []byte(s)
	}
	e.Text, e.Client = t.text(), t.number(math.MaxUint64)
	return e
}

func (t *Reader) step() *Step {
	e := &Step{Time: t.number(math.MaxUint64)}
	for range t.count() {
		s := Span{Sequence: t.number(math.MaxUint64), Position: int(t.number(mostID)), Rows: int(t.number(mostID))}
		s.Proposed = int(t.number(uint64(s.Rows)))
		e.Spans = append(e.Spans, s)
	}
	for range t.count() {
		e.Tokens = append(e.Tokens, int32(t.number(mostID))-1)
	}
	e.Budget = Budget{int(t.number(mostID)), int(t.number(mostID)), int(t.number(mostID))}
	return e
}

func (t *Reader) foreseen() *Foreseen {
	e := &Foreseen{Layer: t.layer(), Late: t.number(1) == 1}
	rows := t.count()
	if rows > mostForeseen {
		t.fault("%d rows foreseen, want at most %d", rows, mostForeseen)
	}
	if t.wrong != "" {
		return e
	}
	experts := t.Model.Layers[e.Layer].Experts
	e.Margins = slices.Repeat([]int8{MarginFloor}, rows*experts)
	for row := range slices.Chunk(e.Margins, experts) {
		for range t.count() {
			expert := t.number(uint64(experts - 1))
			row[expert] = int8(t.byte()) + MarginFloor
		}
	}
	return e
}

// layer reads the index of a layer, which the model must have.
func (t *Reader) layer() int {
	l := int(t.number(mostID))
	if l >= len(t.Model.Layers) {
		t.fault("layer %d of %d", l, len(t.Model.Layers))
		return 0
	}
	return l
}

// byte reads a margin's distance from MarginFloor, which is above 0.
func (t *Reader) byte() byte {
	if len(t.left) == 0 || t.left[0] == 0 || int(t.left[0])+MarginFloor > math.MaxInt8 {
		t.fault("a margin is missing, or out of range")
		return 1
	}
	b := t.left[0]
	t.left = t.left[1:]
	return b
}

func (t *Reader) chosen() *Chosen {
	e := &Chosen{Layer: t.layer()}
	if t.wrong != "" {
		return e
	}
	l := t.Model.Layers[e.Layer]
	n := t.count()
	if n%l.Used != 0 {
		t.fault("%d experts for rows that use %d each", n, l.Used)
	}
	for range n {
		e.Experts = append(e.Experts, int32(t.number(uint64(l.Experts)))-1)
	}
	return e
}

// record reads the next record, at most as long as the rest of the trace.
func (t *Reader) record() (kind byte, err error) {
	kind, err = t.in.ReadByte()
	if err != nil {
		return 0, err // io.EOF: the trace ends where it may
	}
	n, err := binary.ReadUvarint(t.in)
	if err == nil && n > mostBody {
		return 0, fmt.Errorf("byte %d of the trace: a record of %d bytes, want at most %d: the file is damaged",
			t.at, n, mostBody)
	}
	t.body.Reset()
	if err == nil {
		_, err = io.CopyN(&t.body, t.in, int64(n))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, fmt.Errorf("byte %d of the trace: it ends within a record: the recording was cut off there: %w",
			t.at, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return 0, fmt.Errorf("byte %d of the trace: %w", t.at, err)
	}
	t.left, t.wrong = t.body.Bytes(), ""
	return kind, nil
}

// end returns the error of a record, or one for bytes left over.
func (t *Reader) end(kind byte) error {
	if len(t.left) > 0 {
		t.fault("%d bytes are left over", len(t.left))
	}
	if t.wrong != "" {
		return fmt.Errorf("byte %d of the trace: a record of kind %d: %s: the file is damaged", t.at, kind, t.wrong)
	}
	t.at += int64(1 + len(binary.AppendUvarint(nil, uint64(t.body.Len()))) + t.body.Len())
	return nil
}

// fault records the first error; after it nothing more is read.
func (t *Reader) fault(format string, args ...any) {
	if t.wrong == "" {
		t.wrong = fmt.Sprintf(format, args...)
	}
	t.left = nil
}

func (t *Reader) number(most uint64) uint64 {
	n, size := binary.Uvarint(t.left)
	if size <= 0 {
		t.fault("it is too short")
		return 0
	}
	t.left = t.left[size:]
	if n > most {
		t.fault("a number is %d: want at most %d", n, most)
		return 0
	}
	return n
}

// count reads a number of items, at most the number of bytes left.
func (t *Reader) count() int { return int(t.number(uint64(len(t.left)))) }

func (t *Reader) text() string {
	n := t.count()
	if n > len(t.left) {
		t.fault("it is too short")
		return ""
	}
	s := string(t.left[:n])
	t.left = t.left[n:]
	return s
}
