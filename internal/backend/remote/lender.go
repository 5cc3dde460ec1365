package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Lender lets others compute on a device.
type Lender struct {
	Build  string
	Device backend.Device // closed by who opened it, after Close
	Lends  int64          // bytes of memory, for weights, caches and steps of all models together
	Read   int64          // bytes a second that the device reads of its memory; 0: it was not measured

	computing sync.Mutex // one goroutine at a time drives a device
	mu        sync.Mutex
	taken     int64
	guests    map[net.Conn]struct{}
	closed    bool
	all       sync.WaitGroup
}

// mostGuests is how many connections are served at once.
const mostGuests = 64

// free is how many bytes are left to lend.
func (l *Lender) free() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.Lends-l.taken, 0)
}

// take takes bytes of what is lent, or says how many are left.
func (l *Lender) take(bytes int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.Lends - l.taken; bytes > left {
		return fmt.Errorf("it lends %d MiB more, and the layers need %d MiB: have others compute some", max(left, 0)>>20,
			(bytes+1<<20-1)>>20)
	}
	l.taken += bytes
	return nil
}

// Serve carries out what comes on a connection, until that ends, and closes it. The error says why it ended, unless the
// other side hung up.
func (l *Lender) Serve(conn net.Conn) error {
	l.mu.Lock()
	full := l.closed || len(l.guests) >= mostGuests
	if !full {
		if l.guests == nil {
			l.guests = map[net.Conn]struct{}{}
		}
		l.guests[conn] = struct{}{}
		l.all.Add(1)
	}
	l.mu.Unlock()
	if full {
		return errors.Join(errors.New("nothing is lent to one more"), conn.Close())
	}
	defer l.all.Done()
	g := &guest{lender: l, conn: conn, over: make(chan struct{}), frames: make(chan arrived),
		spare: make(chan []byte, spares)}
	err := g.serve()
	l.mu.Lock()
	delete(l.guests, conn)
	l.mu.Unlock()
	return err
}

// Close ends all connections, and waits for what runs.
func (l *Lender) Close() {
	l.mu.Lock()
	l.closed = true
	for conn := range l.guests {
		_ = conn.Close()
	}
	l.mu.Unlock()
	l.all.Wait()
}

// guest is who computes here, on one connection: a model, or nobody yet.
type guest struct {
	lender  *Lender
	conn    net.Conn
	writing sync.Mutex
	answer  []byte
	over    chan struct{}
	frames  chan arrived
	spare   chan []byte

	greeted  bool
	computes bool // a model was compiled
	model    backend.Model
	running  running
	taken    int64
	blocks   []int // bytes of one, by cache class
}

// arrived is a frame that came, or why none comes any more.
type arrived struct {
	kind         kind
	body, memory []byte
	err          error
}

// spares is how many frames there are at once: one is carried out while the next one comes.
const spares = 2

// errHungUp says that the other side closed a model, and the connection.
var errHungUp = errors.New("hung up")

// serve carries out frames one after another.
func (g *guest) serve() (err error) {
	var helpers sync.WaitGroup
	helpers.Go(func() { beating(g.conn, &g.writing, g.over) })
	helpers.Go(g.listen)
	for range spares {
		g.spare <- nil
	}
	for err == nil {
		a := <-g.frames
		if err = a.err; err == nil {
			err = g.carryOut(a.kind, a.body)
			g.spare <- a.memory
		}
	}
	close(g.over)
	_ = g.conn.Close()
	helpers.Wait()
	if failed := g.free(); failed != nil {
		err = errors.Join(err, failed)
	}
	if idle := !g.computes && errors.Is(err, io.EOF); idle || errors.Is(err, errHungUp) {
		return nil
	}
	return err
}

// listen reads frames, one ahead of what is carried out. When none comes any more, a step that runs is left.
func (g *guest) listen() {
	for {
		var a arrived
		select {
		case a.memory = <-g.spare:
		case <-g.over:
			return
		}
		_ = g.conn.SetReadDeadline(time.Now().Add(silence))
		a.kind, a.body, a.memory, a.err = receive(g.conn, a.memory)
		if a.err == nil && a.kind == kindAlive {
			g.spare <- a.memory
			continue
		}
		if a.err != nil {
			g.running.stop.Store(true)
		}
		select {
		case g.frames <- a:
		case <-g.over:
			return
		}
		if a.err != nil {
			return
		}
	}
}

// carryOut does what a frame asks for, and answers it. The error is one after which nothing more is done here.
func (g *guest) carryOut(k kind, text []byte) error {
	b := body{rest: text}
	f, err := g.attempt(k, &b)
	if k == kindClose && err == nil {
		err = g.free()
	}
	if err != nil {
		f = answered(f, k, err)
	}
	ended := error(nil)
	switch {
	case errors.Is(err, errBroken):
		ended = err
	case k == kindClose:
		ended = errHungUp
	}
	if f, err = seal(f); err != nil {
		return err
	}
	g.answer = f
	g.writing.Lock()
	defer g.writing.Unlock()
	if _, err := g.conn.Write(f); err != nil && ended == nil {
		ended = err
	}
	return ended
}

// errBroken is wrapped by a fault after which this connection is of no use.
var errBroken = errors.New("the connection ends")

// attempt computes an answer. A panic is a fault of what came: this side's own programs are checked before they travel.
func (g *guest) attempt(k kind, b *body) (f []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: a fault in what came, or in sluice: %v", errBroken, r)
		}
	}()
	f = answered(g.answer, k, nil)
	switch {
	case k == kindGreet:
		return g.greet(f, b)
	case !g.greeted:
		return f, fmt.Errorf("%w: %w: no greeting came first", errBroken, errGarbage)
	case k == kindProbe:
		return f, nil
	case k == kindCompile:
		return g.compile(f, b)
	case g.model == nil:
		return f, fmt.Errorf("%w: %w: no model was compiled", errBroken, errGarbage)
	}
	switch k {
	case kindUpload:
		w, row := b.number(), b.number()
		if b.err != nil {
			return f, b.err
		}
		return f, g.model.Upload(ir.Ref(w), row, b.rest)
	case kindStep:
		return g.step(f, b)
	case kindCarry:
		return g.carry(f, b)
	case kindCopy:
		class, to, from := b.number(), b.number(), b.number()
		if err := b.end(); err != nil {
			return f, err
		}
		return f, g.model.CopyBlock(class, int32(to), int32(from))
	case kindClose:
		return f, nil
	}
	return f, fmt.Errorf("%w: %w: kind %d", errBroken, errGarbage, k)
}

func (g *guest) greet(f []byte, b *body) ([]byte, error) {
	var other greeting
	if err := read(b.rest, &other); err != nil {
		return f, fmt.Errorf("%w: %w", errBroken, err)
	}
	l := g.lender
	t := l.Device.Traits()
	own := greeting{Protocol: protocol, Build: l.Build, Device: l.Device.Name(), Driver: t.Driver, Free: l.free(),
		Halves: t.Halves, Read: l.Read}
	g.greeted = other.Protocol == protocol && other.Build == l.Build
	text, err := json.Marshal(own)
	return append(f, text...), err
}

// compile compiles a model, if there is memory for it.
func (g *guest) compile(f []byte, b *body) ([]byte, error) {
	var j job
	if g.model != nil {
		return f, fmt.Errorf("%w: %w: a second model", errBroken, errGarbage)
	}
	if err := read(b.rest, &j); err != nil {
		return f, err
	}
	p, c, err := j.bound()
	if err != nil {
		return f, err
	}
	bytes, err := least(p, &c)
	if err == nil {
		err = g.lender.take(bytes)
	}
	if err != nil {
		return f, err
	}
	g.taken = bytes
	g.lender.computing.Lock()
	g.model, err = g.lender.Device.Compile(p, c)
	g.lender.computing.Unlock()
	if err != nil {
		g.model = nil
		return f, errors.Join(err, g.free())
	}
	m := g.model.Memory()
	g.computes = true
	t := terms{Weights: m.Weights, KV: m.KV, Scratch: m.Scratch, Grain: g.model.RowGrain(), Blocks: []int{}}
	for class := range p.Classes {
		t.Blocks = append(t.Blocks, g.model.BlockBytes(class))
	}
	g.blocks, g.running = t.Blocks, running{program: p.Program, config: c, step: g.model.Steps()[0]}
	if more := m.Own() - g.taken; more > 0 {
		if err := g.lender.take(more); err != nil {
			return f, errors.Join(err, g.free())
		}
		g.taken += more
	}
	text, err := json.Marshal(t)
	return append(f, text...), err
}

// free closes the model, and gives back what it took.
func (g *guest) free() (err error) {
	if g.model != nil {
		g.lender.computing.Lock()
		err = g.model.Close()
		g.lender.computing.Unlock()
		g.model = nil
	}
	g.lender.mu.Lock()
	defer g.lender.mu.Unlock()
	g.lender.taken -= g.taken
	g.taken = 0
	return err
}
