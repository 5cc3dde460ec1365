package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a program of a few values, with weights.
func small(t testing.TB) (*backendtest.Model, backend.Config) {
	m, err := judge.Product(quant.F32, 16, 16)
	require.NoError(t, err)
	limits := backend.Limits{KV: backend.KVF32, Blocks: backendtest.Blocks(m.Program, 2), MaxRows: 4, MaxWanted: 4,
		Flight: flight}
	return &backendtest.Model{Model: m}, backend.Config{Limits: limits}
}

// on compiles a program and uploads its weights.
func on(t testing.TB, d backend.Device, m *backendtest.Model, c backend.Config) backend.Model {
	x, err := d.Compile(m.Bound, c)
	require.NoError(t, err)
	for r := range m.Weights {
		require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
	}
	return x
}

// send fills a step of the ring and finishes it; its end comes by the channel.
func send(t testing.TB, x backend.Model, m *backendtest.Model, i int) <-chan error {
	s := x.Steps()[i]
	s.Tokens, s.Wanted = []int32{1, 2}, []int32{0, 1}
	s.Spans = []backend.Span{{Rows: 2, Tables: backendtest.Tables(m.Program, []int32{int32(i)})}}
	for segment := range m.Segments {
		require.NoError(t, backend.Enqueue(x, segment, s))
	}
	done := make(chan error, 1)
	x.Finish(s, func(err error) { done <- err })
	return done
}

// TestSteps: steps are on their way to a lender together, and end in their order.
func TestSteps(t *testing.T) {
	m, c := small(t)
	x := on(t, lent(t, processor(t, 1)), m, c)
	first, second := send(t, x, m, 0), send(t, x, m, 1)
	require.NoError(t, <-first)
	require.NoError(t, <-second)
	require.Equal(t, x.Steps()[0].Logits, x.Steps()[1].Logits)
	require.NoError(t, x.Close())
}

// held is a device whose models end no step until the test lets them.
type held struct {
	backend.Device
	let chan struct{}
}

func (d held) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	return heldModel{m, d.let}, err
}

type heldModel struct {
	backend.Model
	let chan struct{}
}

func (m heldModel) Finish(s *backend.Step, done func(error)) {
	<-m.let
	m.Model.Finish(s, done)
}

// TestGone: a lender that dies fails all steps that are on their way as a lost device does, and what is asked after;
// once the model is closed, the next one finds the lender that has come back.
func TestGone(t *testing.T) {
	m, c := small(t)
	d := held{processor(t, 1), make(chan struct{})}
	l := &Lender{Build: "1", Device: d, Lends: 1 << 30}
	far, err := Open(Options{Addr: "attic:7777", Dial: lending(t, l, anyhow), Build: "1"})
	require.NoError(t, err)
	x := on(t, far, m, c)
	first, second := send(t, x, m, 0), send(t, x, m, 1)
	l.mu.Lock()
	for conn := range l.guests {
		require.NoError(t, conn.Close())
	}
	l.mu.Unlock()
	for _, done := range []<-chan error{first, second} {
		require.ErrorIs(t, <-done, backend.ErrLost)
	}
	require.ErrorIs(t, x.Upload(0, 0, m.Weights[0]), backend.ErrLost)
	require.ErrorIs(t, <-sendAnyway(x, m), backend.ErrLost)
	require.NoError(t, x.Close())
	close(d.let)
	y := on(t, far, m, c)
	require.NoError(t, <-send(t, y, m, 0))
	require.NoError(t, y.Close())
	require.Eventually(t, func() bool { return l.free() == 1<<30 }, 10*time.Second, time.Millisecond)
}

// sendAnyway finishes a step whose lender is gone.
func sendAnyway(x backend.Model, m *backendtest.Model) <-chan error {
	s, done := x.Steps()[0], make(chan error, 1)
	for segment := range m.Segments {
		_ = backend.Enqueue(x, segment, s)
	}
	x.Finish(s, func(err error) { done <- err })
	return done
}

// TestSilent: a lender of whom nothing is heard any more is lost, though the connection stands; one who computes for
// long is not.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		l := newLine(here, "attic")
		var ended bool
		go func() { // it reads, and says that it is there for a while
			defer there.Close()
			go func() { _, _ = io.Copy(io.Discard, there) }()
			for range 20 {
				time.Sleep(beat)
				_, _ = there.Write([]byte{0, 0, 0, 0, byte(kindAlive)})
			}
			<-t.Context().Done()
		}()
		began := time.Now()
		err := l.wait(frame(nil, kindProbe), func([]byte) error { ended = true; return nil })
		require.ErrorIs(t, err, backend.ErrLost)
		require.False(t, ended)
		require.Equal(t, 20*beat+silence, time.Since(began))
		l.end()
	})
}

// TestRefused: who computes otherwise, or has no room, is refused before anything is computed, with both named.
func TestRefused(t *testing.T) {
	d := processor(t, 1)
	for want, o := range map[string]Options{
		"attic is sluice 1, and we are 2":                                           {Build: "2"},
		"attic computes on " + d.Name() + ", and we on other: answers would depend": {Build: "1", Like: named{d}},
	} {
		o.Addr = "attic:7777"
		o.Dial = lending(t, &Lender{Build: "1", Device: d, Lends: 1 << 30}, anyhow)
		_, err := Open(o)
		require.ErrorContains(t, err, want)
	}
	m, c := small(t)
	poor := lending(t, &Lender{Build: "1", Device: d, Lends: 100}, anyhow)
	far, err := Open(Options{Addr: "attic:7777", Dial: poor, Build: "1"})
	require.NoError(t, err)
	_, err = far.Compile(m.Bound, c)
	require.ErrorContains(t, err, "attic: it lends 0 MiB more, and the layers need 1 MiB")
	require.NotErrorIs(t, err, backend.ErrLost)
	c.Slots = [][]int{{0, 1}, {0, 1}}
	_, err = far.Compile(m.Bound, c)
	require.Error(t, err)
}

type named struct{ backend.Device }

func (named) Name() string { return "other" }

// TestGarbage: what no device sends ends its connection, or is answered by an error, and leaves the others alone.
func TestGarbage(t *testing.T) {
	m, c := small(t)
	dial := lending(t, &Lender{Build: "1", Device: processor(t, 1), Lends: 1 << 30}, anyhow)
	far, err := Open(Options{Addr: "attic:7777", Dial: dial, Build: "1"})
	require.NoError(t, err)
	x := on(t, far, m, c)
	greet, err := json.Marshal(greeting{Protocol: protocol, Build: "1"})
	require.NoError(t, err)
	j, err := newJob(m.Bound, &c)
	require.NoError(t, err)
	text, err := json.Marshal(j)
	require.NoError(t, err)
	compile, greeted := string(text), framed(kindGreet, string(greet))
	instead := func(old, by string) string {
		require.Contains(t, compile, old)
		return framed(kindCompile, strings.Replace(compile, old, by, 1))
	}
	compiled := framed(kindCompile, compile)
	for name, frames := range map[string][]string{
		"no frame":         {"\xff\xff\xff\xff\x07"},
		"unknown":          {"\x00\x00\x00\x00\x63"},
		"no greeting":      {framed(kindStep, "\x05")},
		"greeting of text": {framed(kindGreet, "hello")},
		"other protocol":   {framed(kindGreet, `{"protocol":9,"build":"1"}`), framed(kindProbe, "")},
		"no model":         {greeted, framed(kindStep, "\x05")},
		"no program":       {greeted, framed(kindCompile, `{"program":null}`)},
		"a bad program":    {greeted, instead(`"In":[0]`, `"In":[77]`)},
		"no such type":     {greeted, instead(`"types":[0`, `"types":[99`)},
		"huge caches":      {greeted, instead(`"wanted":4`, `"wanted":60000000`)},
		"a second model":   {greeted, compiled, compiled},
		"half a step":      {greeted, compiled, framed(kindStep, "\x01\x00\xff\xff\xff\x7f")},
		"no such deed":     {greeted, compiled, framed(kindStep, "\x63")},
		"no such block":    {greeted, compiled, framed(kindCarry, "\x09"+strings.Repeat("\x00", 7)+"\x01")},
		"no such weight":   {greeted, compiled, framed(kindUpload, "\xff\xff\xff\x7f"+strings.Repeat("\x00", 4))},
	} {
		t.Run(name, func(t *testing.T) {
			conn, _, err := dial(t.Context())
			require.NoError(t, err)
			defer conn.Close()
			_, err = conn.Write([]byte(strings.Join(frames, "")))
			require.NoError(t, err)
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
			all, err := io.ReadAll(conn)
			if err == nil && !strings.HasPrefix(name, "no frame") && name != "unknown" {
				require.Contains(t, string(verdictsOf(t, all)), string([]byte{byte(verdictFault)}), "a fault is told")
			}
			require.NoError(t, <-send(t, x, m, 0), "another one's steps go on")
		})
	}
	require.NoError(t, x.Close())
}

func framed(k kind, text string) string {
	f, err := seal(append(frame(nil, k), text...))
	if err != nil {
		panic(err)
	}
	return string(f)
}

// verdictsOf lists how answers begin.
func verdictsOf(t *testing.T, all []byte) (verdicts []byte) {
	for r := bytes.NewReader(all); r.Len() > 0; {
		k, text, _, err := receive(r, nil)
		require.NoError(t, err)
		if k != kindAlive {
			verdicts = append(verdicts, text[0])
		}
	}
	return verdicts
}

// FuzzReceive: any bytes are a frame or an error, and take no more memory than has come.
func FuzzReceive(f *testing.F) {
	f.Add([]byte(framed(kindStep, "\x05")))
	f.Add([]byte("\xff\xff\xff\x3f\x06abc"))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, got, memory, err := receive(bytes.NewReader(text), nil)
		require.LessOrEqual(t, cap(memory), max(4*len(text), 2*first))
		if err == nil {
			require.Equal(t, text[:headerBytes+len(got)], []byte(framed(k, string(got))))
		}
	})
}

// full is a step in which all is set that travels.
func full() *backend.Step {
	return &backend.Step{Tokens: []int32{1, 2}, Wanted: []int32{1}, Prompt: true, Spans: []backend.Span{{Row: 7, Rows: 2,
		Proposed: 1, Pos: 3, Heard: 6, Grid: ir.Grid{Height: 8, Width: 9}, Sees: []int32{4, 5},
		Tables: []backend.Table{{First: 1, Blocks: []int32{4, 5}}, {Blocks: []int32{6}}},
		Places: []ir.Place{{1, 2, 3}, {4, 5, 6}}}}}
}

// TestStepTravels: a step comes as it was sent, whatever its memory had before.
func TestStepTravels(t *testing.T) {
	for _, s := range []*backend.Step{{}, full(), {Spans: []backend.Span{{Tables: []backend.Table{}}, full().Spans[0]}}} {
		var got backend.Step
		for _, before := range []*backend.Step{full(), s} {
			b := body{rest: begin(nil, before)}
			b.step(&got)
			require.NoError(t, b.end())
		}
		require.Equal(t, begin(nil, s), begin(nil, &got))
		if len(s.Spans) == 1 {
			require.Equal(t, *s, got)
		}
	}
}

// FuzzStep: any bytes are a step or an error; what is a step is written as it was read.
func FuzzStep(f *testing.F) {
	f.Add(begin(nil, full()))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s backend.Step
		b := body{rest: text}
		if b.step(&s); b.err != nil {
			require.ErrorIs(t, b.err, errGarbage)
			return
		}
		read := text[:len(text)-len(b.rest)]
		if len(read) > 0 && read[0] > 1 {
			return // any number but 0 is true
		}
		require.Equal(t, read, begin(nil, &s))
	})
}

// FuzzJob: any text is a program that is compiled, or an error.
func FuzzJob(f *testing.F) {
	m, c := small(f)
	j, err := newJob(m.Bound, &c)
	require.NoError(f, err)
	text, err := json.Marshal(j)
	require.NoError(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var j job
		if read(text, &j) != nil {
			return
		}
		p, c, err := j.bound()
		if err == nil {
			_, _ = least(p, &c)
		}
	})
}

// TestDial: a lender who is not there yet is waited for, and lost after a while.
func TestDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := small(t)
		calls := 0
		d := &Device{options: Options{Addr: "attic:7777", Dial: func(context.Context) (net.Conn, string, error) {
			calls++
			return nil, "", errors.New("nobody listens")
		}}}
		began := time.Now()
		_, err := d.Compile(m.Bound, c)
		require.ErrorIs(t, err, backend.ErrLost)
		require.ErrorContains(t, err, "attic:7777: nobody listens")
		require.GreaterOrEqual(t, time.Since(began), patience)
		require.Greater(t, calls, 10)
	})
}

// TestMostIsAllocatedAsItComes: a long frame whose bytes do not come takes little memory.
func TestMostIsAllocatedAsItComes(t *testing.T) {
	header := binary.LittleEndian.AppendUint32(nil, 1<<30)
	_, _, memory, err := receive(bytes.NewReader(append(header, byte(kindStep), 1, 2, 3)), nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.LessOrEqual(t, cap(memory), first)
}
