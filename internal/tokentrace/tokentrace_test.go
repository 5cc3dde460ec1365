package tokentrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var model = Model{Name: "small", Vocab: 1000, Vectors: 77, Dense: []int64{1 << 40, 3},
	Layers: []Layer{{Experts: 32, Used: 2, Bytes: 100}, {Experts: 300, Used: 1, Bytes: 7}}, Began: 1 << 50,
	Traits: []Trait{{"device", "a processor"}, {"build", ""}}}

var events = []Event{
	&Open{Sequence: 1, Time: 5, Prompt: []int32{1, 999, math.MaxInt32}, Settings: []byte(`{"seed":1}`), Text: "hello",
		Client: 7},
	&Open{Sequence: math.MaxUint64, Time: 6},
	&Step{Time: 9, Spans: []Span{{Sequence: 1, Position: 0, Rows: 2}, {Sequence: 2, Position: 70, Rows: 1}}},
	&Step{Time: 10, Spans: []Span{{Sequence: 1, Position: 2, Rows: 2, Proposed: 1}}, Tokens: []int32{-1, math.MaxInt32 - 1},
		Budget: Budget{Rows: 512, Alone: 1000, Fixed: math.MaxInt32}},
	&Foreseen{Layer: 1, Margins: margins(300, 1)},
	&Foreseen{Layer: 0, Late: true, Margins: margins(32, 2)},
	&Chosen{Layer: 0, Experts: []int32{0, 31, -1, -1}},
	&Chosen{Layer: 1, Experts: []int32{299, 0}},
	&Settled{Sequence: 1, Accepted: 300},
	&Waited{Sequence: 1, For: []Spent{{Cause: 2, Time: 1 << 40}, {Cause: 255}}},
	&Drawn{Sequence: 1, Token: 12},
	&End{Sequence: 1, Time: 1 << 50},
}

// margins of rows go from the floor to the top and begin again.
func margins(experts, rows int) []int8 {
	m := make([]int8, experts*rows)
	for i := range m {
		m[i] = int8(i%(math.MaxInt8-MarginFloor+1) + MarginFloor)
	}
	return m
}

// TestOldVersions: a trace whose tokens were drawn in another way is refused, and told why.
func TestOldVersions(t *testing.T) {
	for v := range byte(sincePlain) {
		data := bytes.Replace(written(t), append([]byte{version}, "\x05small"...), append([]byte{v}, "\x05small"...), 1)
		_, _, err := readAll(data)
		if v == 0 {
			require.EqualError(t, err, "the trace is of version 0, and this program reads versions 5 and 6: record it again")
			continue
		}
		require.EqualError(t, err, fmt.Sprintf("the trace is of version %d, whose tokens were drawn by weights of floating "+
			"point: this program draws by whole numbers, and reads versions 5 and 6: record it again", v))
	}
}

func written(t require.TestingT) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b, &model)
	require.NoError(t, err)
	for _, e := range events {
		require.NoError(t, w.Write(e))
	}
	return b.Bytes()
}

// readAll reads events up to the end, or an error.
func readAll(data []byte) (m Model, all []Event, err error) {
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		return m, nil, err
	}
	for {
		e, err := r.Next()
		if err != nil {
			return r.Model, all, err
		}
		all = append(all, e)
	}
}

func TestRoundTrip(t *testing.T) {
	m, all, err := readAll(written(t))
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, model, m)
	require.Equal(t, events, all)
}

// TestCut: of a trace that was cut off anywhere what is whole can be read, and the end says where it was.
func TestCut(t *testing.T) {
	data := written(t)
	for n := range data {
		m, all, err := readAll(data[:n])
		require.Error(t, err)
		if m.Name == "" {
			continue
		}
		require.Equal(t, events[:len(all)], append([]Event{}, all...))
		if !errors.Is(err, io.EOF) {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.ErrorContains(t, err, "the recording was cut off there")
		}
	}
}

func TestDamage(t *testing.T) {
	begin := written(t)[:len(magic)]
	head := func(m Model) []byte {
		var b bytes.Buffer
		_, err := NewWriter(&b, &m)
		require.NoError(t, err)
		return b.Bytes()
	}
	plain := head(model)
	for want, data := range map[string][]byte{
		"no token trace": []byte("GGUF"),
		"the first record of the trace is of kind 5": append(bytes.Clone(begin), kindDrawn, 1, 1),
		"version 9":                          append(bytes.Clone(begin), kindModel, 1, 9),
		"version 0":                          append(bytes.Clone(begin), kindModel, 1, 0),
		"65 rows foreseen":                   append(append(bytes.Clone(plain), kindForeseen, 68, 0, 0, 65), make([]byte, 65)...),
		"a margin is missing":                append(bytes.Clone(plain), kindForeseen, 5, 0, 0, 1, 1, 3),
		"out of range":                       append(bytes.Clone(plain), kindForeseen, 6, 0, 0, 1, 1, 3, 0),
		"a number is 32: want at most 31":    append(bytes.Clone(plain), kindForeseen, 6, 0, 0, 1, 1, 32, 1),
		"3 experts used of 2":                head(Model{Layers: []Layer{{Experts: 2, Used: 3}}}),
		"kind 99: the kind is not known":     append(bytes.Clone(plain), 99, 0),
		"1 bytes are left over":              append(bytes.Clone(plain), kindEnd, 3, 1, 1, 1),
		"a number is 3: want at most 2":      append(bytes.Clone(plain), kindStep, 6, 1, 1, 1, 0, 2, 3),
		"it is too short":                    append(bytes.Clone(plain), kindEnd, 1, 1),
		"layer 2 of 2":                       append(bytes.Clone(plain), kindChosen, 2, 2, 0),
		"1 experts for rows that use 2 each": append(bytes.Clone(plain), kindChosen, 3, 0, 1, 1),
		"a number is 40: want at most 32":    append(bytes.Clone(plain), kindChosen, 4, 0, 2, 40, 1),
		"a record of 1099511627775 bytes":    append(bytes.Clone(plain), kindEnd, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f),
	} {
		_, _, err := readAll(data)
		require.ErrorContains(t, err, want)
	}
}

// TestWriterKeepsItsError: after a write that failed nothing is written any more.
func TestWriterKeepsItsError(t *testing.T) {
	full := errors.New("full")
	_, err := NewWriter(failing{full}, &model)
	require.ErrorIs(t, err, full)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// said is an event of a model.
type said struct {
	of Model
	Event
}

// readSaid reads events with their models, up to the end or an error.
func readSaid(data []byte) (first Model, all []said, err error) {
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		return first, nil, err
	}
	first = r.Model
	for {
		e, err := r.Next()
		if err != nil {
			return first, all, err
		}
		all = append(all, said{r.Model, e})
	}
}

// writeSaid writes them; a model before its first event, and where another one has its number.
func writeSaid(t require.TestingT, first Model, all []said) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b, &first)
	require.NoError(t, err)
	written := map[int]Model{first.Number: first}
	for i := range all {
		m := &all[i].of
		if before, ok := written[m.Number]; !ok || !assert.ObjectsAreEqual(before, *m) {
			require.NoError(t, w.Model(m))
			written[m.Number] = *m
		}
		w.Of(m.Number)
		require.NoError(t, w.Write(all[i].Event))
	}
	return b.Bytes()
}

// TestSeveralModels: each event is of the model that it was written of, also where what follows is read on its own.
func TestSeveralModels(t *testing.T) {
	other := Model{Name: "other", Vocab: 9, Layers: []Layer{{Experts: 4, Used: 4}}, Number: 7}
	all := []said{{model, &Drawn{1, 2}}, {other, &Chosen{Experts: []int32{0, 1, 2, 3}}}, {other, &Drawn{1, 3}},
		{model, &Chosen{Layer: 1, Experts: []int32{299}}}}
	data := writeSaid(t, model, all)
	first, got, err := readSaid(data)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, model, first)
	require.Equal(t, all, got)

	var parts [2]bytes.Buffer
	whole, err := NewWriter(&parts[0], &model, &other)
	require.NoError(t, err)
	whole.Part()
	whole.out = &parts[1] // goes behind another beginning
	whole.Of(other.Number)
	require.NoError(t, whole.Write(&Drawn{1, 4}))
	begin := writeSaid(t, other, []said{{model, &Drawn{1, 5}}})
	_, got, err = readSaid(append(begin, parts[1].Bytes()...))
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []said{{model, &Drawn{1, 5}}, {other, &Drawn{1, 4}}}, got)

	_, _, err = readSaid(append(writeSaid(t, model, nil), kindOf, 1, 9))
	require.ErrorContains(t, err, "there is no model 9")
}

// TestWriteAllocatesNothing: writing costs a step no allocation.
func TestWriteAllocatesNothing(t *testing.T) {
	w, err := NewWriter(io.Discard, &model)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, e := range events {
			_ = w.Write(e)
		}
	}))
}

// FuzzRead: whatever the bytes, reading ends, and what was read is written and read again.
func FuzzRead(f *testing.F) {
	f.Add(written(f))
	f.Add([]byte(magic))
	f.Add(writeSaid(f, model, []said{{Model{Number: 3}, &Drawn{1, 2}}, {model, &Drawn{1, 2}}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, all, err := readSaid(data)
		if err == nil {
			t.Fatal("no end")
		}
		if len(all) == 0 {
			return
		}
		again, events, err := readSaid(writeSaid(t, first, all))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, first, again)
		require.Equal(t, all, events)
	})
}
