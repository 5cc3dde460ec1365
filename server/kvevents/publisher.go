package kvevents

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/internal/zmtp"
	"github.com/sluice-ai/sluice/stages/kv"
)

// Options say where events are published.
type Options struct {
	Events string // endpoint of the PUB socket: see Parse
	Replay string // endpoint of the ROUTER socket; empty: there is none
	Topic  string // first frame of each message
	Log    zerolog.Logger
}

// Bounds of what peers may take.
const (
	mostPeers  = 64 // at once, of each socket
	mostTopics = 64 // that a subscriber asks for
)

// How long the publisher waits before it calls a subscriber again that it could not reach, at first and at most.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// Publisher publishes what it is told. Subscribers that are slow miss the oldest batches, and nobody waits for them.
type Publisher struct {
	topic   []byte
	log     zerolog.Logger
	journal *journal
	ctx     context.Context
	cancel  context.CancelFunc
	all     sync.WaitGroup
	events  net.Listener // nil: it calls the subscriber
	replay  net.Listener // nil: there is none
	now     func() time.Time
}

// Parse takes apart an endpoint as vLLM's users write it. tcp://*:5557 and tcp://[::]:5557 are listened at on all of this
// machine's addresses, tcp://HOST:PORT is called; HOST:PORT and :PORT alone, as other flags have them, are listened at.
func Parse(endpoint string) (addr string, calls bool, err error) {
	addr, calls = strings.CutPrefix(endpoint, "tcp://")
	host, port, err := net.SplitHostPort(addr)
	if _, numeric := strconv.ParseUint(port, 10, 16); err != nil || numeric != nil || calls && host == "" {
		return "", false, fmt.Errorf("%q is no endpoint: want tcp://*:5557 or HOST:PORT to listen at, or tcp://HOST:PORT to call", endpoint)
	}
	if host == "*" || host == "::" {
		return ":" + port, false, nil
	}
	return addr, calls, nil
}

// Open listens for subscribers, or calls one. Numbers begin with the time, in microseconds, so that those of a process
// are above those of the one before: who knew that one sees a gap and asks for what it missed, which begins with news
// that all was cleared.
func Open(o Options) (*Publisher, error) {
	p := &Publisher{topic: []byte(o.Topic), log: o.Log, journal: newJournal(uint64(time.Now().UnixMicro())), now: time.Now}
	addr, calls, err := Parse(o.Events)
	if err == nil && !calls {
		p.events, err = net.Listen("tcp", addr)
	}
	if err != nil {
		return nil, err
	}
	if o.Replay != "" {
		at, _, err := Parse(o.Replay) // nobody is called there, as in vLLM
		if err == nil {
			p.replay, err = net.Listen("tcp", at)
		}
		if err != nil {
			return nil, errors.Join(err, p.shut())
		}
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if calls {
		p.all.Go(func() { p.call(addr) })
	} else {
		p.all.Go(func() { p.accept(p.events, p.publish) })
	}
	if p.replay != nil {
		p.all.Go(func() { p.accept(p.replay, p.repeat) })
	}
	return p, nil
}

// Tell publishes news. It does not wait for subscribers. What it is given stays the caller's.
func (p *Publisher) Tell(all []kv.News) { p.journal.add(encode(all, p.now())) }

// Addrs are the addresses that are listened at: of events, or nil, and of replays, or nil.
func (p *Publisher) Addrs() (events, replay net.Addr) {
	if p.events != nil {
		events = p.events.Addr()
	}
	if p.replay != nil {
		replay = p.replay.Addr()
	}
	return events, replay
}

// Close hangs up.
func (p *Publisher) Close() {
	p.cancel()
	_ = p.shut()
	p.all.Wait()
}

func (p *Publisher) shut() (err error) {
	for _, ln := range []net.Listener{p.events, p.replay} {
		if ln != nil {
			err = errors.Join(err, ln.Close())
		}
	}
	return err
}

// accept serves those who come, until the listener is closed.
func (p *Publisher) accept(ln net.Listener, serve func(net.Conn) error) {
	places := make(chan struct{}, mostPeers)
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files
			p.log.Warn().Err(err).Msg("accepting a subscriber to KV events")
			p.wait(firstRetry)
			continue
		}
		select {
		case places <- struct{}{}:
			p.all.Go(func() {
				p.hold(conn, serve)
				<-places
			})
		default:
			p.log.Warn().Int("subscribers", mostPeers).Str("from", conn.RemoteAddr().String()).
				Msg("sending a subscriber to KV events away: there are as many as can be")
			_ = conn.Close()
		}
	}
}

// call serves the one subscriber, again and again.
func (p *Publisher) call(addr string) {
	retry := firstRetry
	for p.ctx.Err() == nil {
		dialer := net.Dialer{Timeout: lastRetry}
		conn, err := dialer.DialContext(p.ctx, "tcp", addr)
		if err == nil {
			retry = firstRetry
			p.hold(conn, p.publish)
		} else {
			p.log.Debug().Err(err).Str("at", addr).Msg("calling the subscriber to KV events")
			retry = min(2*retry, lastRetry)
		}
		p.wait(retry)
	}
}

// wait waits for so long, or until the publisher is closed.
func (p *Publisher) wait(long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
}

// hold serves a connection until it ends, and closes it. Whatever a peer does harms its own connection alone.
func (p *Publisher) hold(conn net.Conn, serve func(net.Conn) error) {
	stop := context.AfterFunc(p.ctx, func() { _ = conn.Close() })
	defer func() {
		stop()
		_ = conn.Close() // it may be closed
		if fault := recover(); fault != nil {
			p.log.Error().Any("panic", fault).Msg("a defect: serving a subscriber to KV events")
		}
	}()
	err := serve(conn)
	if p.ctx.Err() == nil {
		p.log.Debug().Err(err).Str("from", conn.RemoteAddr().String()).Msg("a subscriber to KV events is gone")
	}
}

// publish sends a subscriber what it asks for, from now on.
func (p *Publisher) publish(conn net.Conn) error {
	at := p.journal.end()
	peer, err := zmtp.Introduce(conn, "PUB", "SUB", "XSUB")
	if err != nil {
		return err
	}
	var wanted atomic.Bool
	gone := make(chan error, 1)
	p.all.Go(func() { gone <- p.subscriptions(peer, &wanted) })
	for {
		batch, number, more := p.journal.read(at)
		if batch == nil {
			select {
			case <-more:
				continue
			case err := <-gone:
				return err
			}
		}
		if at = number + 1; !wanted.Load() {
			continue
		}
		if err := peer.Send(p.topic, numbered(number), batch); err != nil {
			_ = conn.Close()
			return errors.Join(err, <-gone)
		}
	}
}

// subscriptions reads what a subscriber asks for until it is gone: the beginnings of topics, counted.
func (p *Publisher) subscriptions(peer *zmtp.Conn, wanted *atomic.Bool) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("a defect: reading what a subscriber asks for: %v", fault)
		}
	}()
	topics := map[string]int{}
	for {
		frames, err := peer.Receive()
		if err != nil {
			return err
		}
		if len(frames) != 1 || len(frames[0]) == 0 || frames[0][0] > 1 {
			continue // as ZeroMQ's own PUB sockets do
		}
		topic := string(frames[0][1:])
		if frames[0][0] == 1 {
			topics[topic]++
		} else if topics[topic]--; topics[topic] <= 0 {
			delete(topics, topic)
		}
		if len(topics) > mostTopics {
			return fmt.Errorf("more than %d topics are asked for", mostTopics)
		}
		is := false
		for t := range topics {
			is = is || strings.HasPrefix(string(p.topic), t)
		}
		wanted.Store(is)
	}
}

// repeat sends batches again, from the number that is asked for up to the latest one, and the end.
func (p *Publisher) repeat(conn net.Conn) error {
	peer, err := zmtp.Introduce(conn, "ROUTER", "REQ", "DEALER", "ROUTER")
	if err != nil {
		return err
	}
	for {
		frames, err := peer.Receive()
		if err != nil {
			return err
		}
		if len(frames) != 2 || len(frames[0]) != 0 || len(frames[1]) != 8 {
			p.log.Debug().Int("frames", len(frames)).Msg("a request for KV events, want an empty frame and one of 8 bytes")
			continue
		}
		end := p.journal.end()
		for at := binary.BigEndian.Uint64(frames[1]); at < end; at++ {
			var batch []byte
			if batch, at, _ = p.journal.read(at); batch == nil {
				break
			}
			if err := peer.Send(nil, numbered(at), batch); err != nil {
				return err
			}
		}
		if err := peer.Send(nil, numbered(math.MaxUint64), nil); err != nil {
			return err
		}
	}
}

// numbered is a number as a frame.
func numbered(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
