package kvevents

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/internal/zmtp"
	"github.com/sluice-ai/sluice/stages/kv"
)

// patient is how long a test waits for what must come.
const patient = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, o Options) *Publisher {
	o.Log = zerolog.New(io.Discard)
	p, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// block is news of a block whose tokens are all one.
func block(kind kv.NewsKind, tier kv.Tier, key, parent byte) kv.News {
	n := kv.News{Kind: kind, Tier: tier, First: parent == 0, Key: kv.Key{31: key}, Parent: kv.Key{31: parent}}
	for i := range n.Tokens {
		n.Tokens[i] = 1000 + int32(key)
	}
	return n
}

// receive takes the next message of a socket of ZeroMQ's library for Go.
func receive(t *testing.T, from zmq4.Socket) [][]byte {
	t.Helper()
	got := make(chan zmq4.Msg, 1)
	go func() {
		if m, err := from.Recv(); err == nil {
			got <- m
		}
		close(got)
	}()
	select {
	case m, ok := <-got:
		require.True(t, ok, "it fails")
		return m.Frames
	case <-time.After(patient):
		t.Fatal("nothing comes")
		return nil
	}
}

// TestBatches: batches are what a decoder that we did not write reads, and what vLLM's events say.
func TestBatches(t *testing.T) {
	at := time.Unix(1_700_000_000, 250_000_000)
	decode := func(all []kv.News) (got []any) {
		require.NoError(t, msgpack.Unmarshal(encode(all, at), &got))
		return got
	}
	text := []kv.News{{Kind: kv.Cleared}, block(kv.Stored, kv.Device, 1, 0), block(kv.Stored, kv.Device, 2, 1),
		block(kv.Stored, kv.Device, 4, 1), block(kv.Stored, kv.Host, 5, 4), block(kv.Removed, kv.Device, 2, 1),
		block(kv.Removed, kv.Device, 1, 0), block(kv.Removed, kv.Disk, 9, 0)}
	tokens := func(keys ...int) (all []any) {
		for _, k := range keys {
			for range 64 {
				all = append(all, uint32(1000+k))
			}
		}
		return all
	}
	id := func(n uint64) any { return n }
	require.Equal(t, []any{1_700_000_000.25, []any{
		[]any{"AllBlocksCleared"},
		[]any{"BlockStored", []any{id(1), id(2)}, nil, tokens(1, 2), int8(64), nil, "GPU", nil},
		[]any{"BlockStored", []any{id(4)}, id(1), tokens(4), int8(64), nil, "GPU", nil},
		[]any{"BlockStored", []any{id(5)}, id(4), tokens(5), int8(64), nil, "CPU", nil},
		[]any{"BlockRemoved", []any{id(2), id(1)}, "GPU"},
		[]any{"BlockRemoved", []any{id(9)}, "STORAGE"},
	}}, decode(text))

	var long []kv.News
	for i := range 40 {
		n := block(kv.Stored, kv.Device, byte(i+1), byte(i))
		n.Tokens[0], n.Tokens[1], n.Tokens[2], n.Tokens[3] = 5, 127, 128, math.MaxInt32
		long = append(long, n)
	}
	event := decode(long)[1].([]any)[0].([]any)
	require.Len(t, event[1], 40)
	require.Len(t, event[3], 40*64)
	require.Equal(t, []any{int8(5), int8(127), uint32(128), uint32(math.MaxInt32), uint32(1001)}, event[3].([]any)[:5])
	apart := slices.Repeat([]kv.News{{First: true}}, 20) // of as many texts
	require.Equal(t, 20, len(decode(apart)[1].([]any)))
}

// TestPublishes: to a subscriber that we did not write, in order and with numbers; one that asks for another topic gets
// nothing. What was told before it came is repeated.
func TestPublishes(t *testing.T) {
	began := uint64(time.Now().UnixMicro())
	p := open(t, Options{Events: "127.0.0.1:0", Replay: "127.0.0.1:0", Topic: "kv@pod@model"})
	p.Tell([]kv.News{{Kind: kv.Cleared}})
	events, replay := p.Addrs()
	sub, other := zmq4.NewSub(t.Context()), zmq4.NewSub(t.Context())
	for s, topic := range map[zmq4.Socket]string{sub: "kv@", other: "kv@pod@models"} {
		require.NoError(t, s.Dial("tcp://"+events.String()))
		require.NoError(t, s.SetOption(zmq4.OptionSubscribe, topic))
		t.Cleanup(func() { _ = s.Close() })
	}
	first := p.number(t)
	require.GreaterOrEqual(t, first, began)
	last, told := uint64(0), 0
	next := make(chan [][]byte, 100)
	go func() {
		for {
			m, err := sub.Recv()
			if err != nil {
				close(next)
				return
			}
			next <- m.Frames
		}
	}()
	for last == 0 { // its subscription is on its way
		p.Tell([]kv.News{block(kv.Stored, kv.Device, 1, 0)})
		told++
		select {
		case got := <-next:
			last = binary.BigEndian.Uint64(got[1])
			require.Equal(t, "kv@pod@model", string(got[0]))
			require.Len(t, got, 3)
			require.Greater(t, last, first)
		case <-time.After(10 * time.Millisecond):
		}
	}
	for range 20 {
		p.Tell([]kv.News{block(kv.Removed, kv.Device, 1, 0)})
	}
	end := first + 1 + uint64(told) + 20
	for last+1 < end {
		select {
		case got := <-next:
			last++
			require.Equal(t, last, binary.BigEndian.Uint64(got[1]))
		case <-time.After(patient):
			t.Fatal("nothing comes")
		}
	}

	require.NoError(t, other.SetOption(zmq4.OptionSubscribe, "kv@pod"))
	came := make(chan zmq4.Msg, 1)
	go func() {
		if m, err := other.Recv(); err == nil {
			came <- m
		}
		close(came)
	}()
	for at := uint64(0); at == 0; { // its subscription is on its way
		p.Tell([]kv.News{{Kind: kv.Cleared}})
		select {
		case m := <-came:
			at = binary.BigEndian.Uint64(m.Frames[1])
			require.GreaterOrEqual(t, at, end, "nothing came before it was asked for")
		case <-time.After(10 * time.Millisecond):
		}
	}
	end = p.journal.end()

	ask := zmq4.NewDealer(t.Context())
	defer ask.Close()
	require.NoError(t, ask.Dial("tcp://"+replay.String()))
	for _, from := range []uint64{0, end - 3, end} {
		require.NoError(t, ask.Send(zmq4.NewMsgFrom(nil, []byte("what?"))), "it is passed over")
		require.NoError(t, ask.Send(zmq4.NewMsgFrom(nil, numbered(from))))
		for n := max(from, first); n < end; n++ {
			got := receive(t, ask)
			require.Equal(t, n, binary.BigEndian.Uint64(got[1]))
			kept, _, _ := p.journal.read(n)
			require.Equal(t, [][]byte{{}, numbered(n), kept}, got)
		}
		require.Equal(t, [][]byte{{}, {255, 255, 255, 255, 255, 255, 255, 255}, {}}, receive(t, ask))
	}
}

// number is that of the first batch.
func (p *Publisher) number(t *testing.T) uint64 {
	_, at, _ := p.journal.read(0)
	require.NotZero(t, at)
	return at
}

// TestCalls: a subscriber that listens is called, and called again when it comes back.
func TestCalls(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	p := open(t, Options{Events: "tcp://" + ln.Addr().String(), Topic: "kv"})
	for range 2 {
		conn, err := ln.Accept()
		require.NoError(t, err)
		c, err := zmtp.Introduce(conn, "SUB", "PUB")
		require.NoError(t, err)
		require.NoError(t, c.Send([]byte("\x01")))
		stop := make(chan struct{})
		told := make(chan struct{})
		go func() {
			defer close(told)
			for {
				p.Tell([]kv.News{{Kind: kv.Cleared}})
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		got, err := c.Receive()
		require.NoError(t, err)
		require.Equal(t, "kv", string(got[0]))
		close(stop)
		<-told
		require.NoError(t, conn.Close())
	}
}

// TestNobodyIsWaitedFor: a subscriber that reads nothing, strangers and a crowd hold up neither who tells nor others.
func TestNobodyIsWaitedFor(t *testing.T) {
	p := open(t, Options{Events: "127.0.0.1:0", Topic: "kv"})
	events, _ := p.Addrs()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", events.String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	frozen, err := zmtp.Introduce(dial(), "SUB", "PUB")
	require.NoError(t, err)
	require.NoError(t, frozen.Send([]byte("\x01")))
	stranger := dial()
	_, err = stranger.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n" + strings.Repeat("x", 64)))
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, stranger)
	require.NoError(t, err, "it is hung up on")

	reading, err := zmtp.Introduce(dial(), "SUB", "PUB")
	require.NoError(t, err)
	require.NoError(t, reading.Send([]byte("\x01")))
	var seen atomic.Uint64
	ctx, done := context.WithCancel(t.Context())
	go func() {
		defer done()
		for {
			got, err := reading.Receive() // 4 KiB at most: the batches of this test are smaller
			if err != nil {
				return
			}
			seen.Store(binary.BigEndian.Uint64(got[1]))
		}
	}()
	large := make([]kv.News, 12)
	for i := range large {
		large[i] = block(kv.Stored, kv.Device, byte(i+1), byte(i))
	}
	for range 5000 { // more than the sockets of one that reads nothing hold
		p.Tell(large)
	}
	last := p.journal.end() - 1
	require.Eventually(t, func() bool { return seen.Load() == last || ctx.Err() != nil }, patient, time.Millisecond)
	require.NoError(t, ctx.Err())

	var crowd []net.Conn
	for range mostPeers { // two have places already
		crowd = append(crowd, dial())
	}
	gone := 0
	for _, c := range crowd {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patient)))
		if _, err := io.ReadFull(c, make([]byte, 64)); err != nil {
			gone++
		}
	}
	require.GreaterOrEqual(t, gone, 2)
	require.LessOrEqual(t, gone, 3, "the stranger may not have left its place yet")
}

// TestEndpoints: as vLLM's users write them, and as ours.
func TestEndpoints(t *testing.T) {
	for endpoint, want := range map[string]struct {
		addr  string
		calls bool
	}{
		"tcp://*:5557": {":5557", false}, "tcp://[::]:5557": {":5557", false}, "tcp://epp.svc:5557": {"epp.svc:5557", true},
		":5557": {":5557", false}, "10.0.0.1:5557": {"10.0.0.1:5557", false}, "tcp://[::1]:1": {"[::1]:1", true},
	} {
		addr, calls, err := Parse(endpoint)
		require.NoError(t, err, endpoint)
		require.Equal(t, want.addr, addr)
		require.Equal(t, want.calls, calls)
	}
	for _, endpoint := range []string{"", "tcp://", "5557", "ipc:///tmp/x", "tcp://:5557", "host:", "host:port", "a:70000"} {
		_, _, err := Parse(endpoint)
		require.ErrorContains(t, err, "is no endpoint: want tcp://*:5557", endpoint)
	}
	p := open(t, Options{Events: "127.0.0.1:0"})
	at, _ := p.Addrs()
	_, err := Open(Options{Events: "127.0.0.1:0", Replay: at.String()})
	require.ErrorContains(t, err, "address already in use")
}
