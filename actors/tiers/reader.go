package tiers

import (
	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/storage/uring"
)

// The reader accepts Flush and *read from uploaders, whose reads its thread carries out, and Renew.

// Renew, from a device, says that a model has left, or that the slabs are other ones: the reader closes the files that
// it holds, and learns which memory the slabs are.
type Renew struct{}

func (*Renew) Late() {}

// reader reads the models' files. A thread of its own drives the ring; the actor passes reads on to it and never
// waits for the disk.
type reader struct {
	system      *run.System
	log         zerolog.Logger
	slabs       *Slabs
	open        OpenDisk
	sums        *uring.Sums // of all incarnations
	disk        *trace.Track
	out         readerEdges
	incarnation int
	gens        map[string]uint64 // by uploader
	io          *ioThread
}

// readerEdges are the reader's edges: one to each uploader.
type readerEdges struct{ restarted []run.Edge[restarted] }

func (r *reader) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		r.io = startIO(r.log, r.open, r.slabs, r.sums, r.disk)
		for _, user := range r.out.restarted {
			if r.incarnation > 0 {
				user.Send(&restarted{})
			}
		}
	case *actor.Stopping, *actor.Restarting:
		r.io.stop()
	case *run.Flush:
		r.gens[m.Of.Id] = m.Gen
		r.io.stop() // nothing of an older generation is being read any more; what others asked for is answered
		r.io = startIO(r.log, r.open, r.slabs, r.sums, r.disk)
		m.Done()
	case *Renew:
		r.io.renew()
	case *read:
		if m.gen == r.gens[m.by] {
			m.asked = now()
			r.io.requests <- m // holds as many as can be under way: never blocks
		}
	default:
		r.system.Lifecycle(c)
	}
}
