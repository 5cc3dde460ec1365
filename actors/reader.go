package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
)

// All that the reader accepts, from the uploader: flush, and
//
// read asks for bytes of the model's file in a slab. The same struct returns as the answer, data being the part of
// the slab that holds exactly those bytes.
type read struct {
	gen   uint64
	slab  int
	part  int
	from  int64
	bytes int
	reply run.Edge[read]
	asked time.Time // when it was passed on to the thread
	began time.Time // when that passed it on to the disk

	data []byte
	err  error
}

func (*read) Late() {}

// reader reads the model's files. A thread of its own drives the ring; the actor passes reads on to it and never
// waits for the disk.
type reader struct {
	*core
	out         readerEdges
	incarnation int
	gen         uint64
	io          *ioThread
}

func (r *reader) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		r.io = startIO(r.core)
		if r.incarnation > 0 {
			r.out.restarted.Send(&restarted{})
		}
	case *actor.Stopping, *actor.Restarting:
		r.io.stop()
	case *run.Flush:
		r.gen = m.Gen
		r.io.stop() // what was being read of an older generation is in no slab any more
		r.io = startIO(r.core)
		m.Done()
	case *read:
		if m.gen == r.gen {
			m.asked = now()
			r.io.requests <- m // holds as many as there are slabs: never blocks
		}
	default:
		r.system.Lifecycle(c)
	}
}
