package tiers

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
)

// The packer accepts Flush and pack, from the uploader.
//
// pack asks for rows of a weight to be copied from a slab to the device. The same struct returns as the answer.
type pack struct {
	gen   uint64
	piece *piece
	model backend.Model
	ref   ir.Ref
	row   int
	data  []byte // the part of the slab that holds the rows

	err error
}

func (*pack) Late() {}

// packer copies weights to the device, which repacks them on the way: work for every core. Goroutines of its own do
// it; the actor passes pieces on to them, and waits only for those under way when it ends or is flushed, a few
// milliseconds.
type packer struct {
	system      *run.System
	out         packerEdges
	incarnation int
	gen         uint64
	crew        *crew
}

type packerEdges struct {
	restarted run.Edge[restarted]
	packed    run.Edge[pack]
}

// packers is how many goroutines copy pieces from slabs, if there are as many cores.
const packers = 8

func (p *packer) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		p.crew = startCrew(p.out)
		if p.incarnation > 0 {
			p.out.restarted.Send(&restarted{})
		}
	case *actor.Stopping, *actor.Restarting:
		p.crew.stop()
	case *run.Flush:
		p.gen = m.Gen
		p.crew.stop() // nobody reads a slab of an older generation any more
		p.crew = startCrew(p.out)
		m.Done()
	case *pack:
		if m.gen == p.gen {
			p.crew.pieces <- m // holds as many as there are slabs: never blocks
		}
	default:
		p.system.Lifecycle(c)
	}
}

// crew is goroutines that copy pieces to the device.
type crew struct {
	out    packerEdges
	pieces chan *pack
	stop   func() // lets the pieces under way end, and the goroutines with them; it may be called twice
}

func startCrew(out packerEdges) *crew {
	w := &crew{out: out, pieces: make(chan *pack, place.Slabs)}
	var running sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), packers) {
		running.Go(w.work)
	}
	w.stop = sync.OnceFunc(func() {
		close(w.pieces)
		running.Wait()
	})
	return w
}

func (w *crew) work() {
	for m := range w.pieces {
		m.err = upload(m)
		w.out.packed.Send(m)
	}
}

// upload copies a piece to the device. It returns a panic of the device as an error: no supervisor would see it on
// this goroutine.
func upload(m *pack) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the device failed on rows from %d on: %v\n%s", m.row, reason, debug.Stack())
		}
	}()
	if !m.piece.of.memory.enter() {
		return errModelClosed
	}
	defer m.piece.of.memory.leave()
	return m.model.Upload(m.ref, m.row, m.data)
}
