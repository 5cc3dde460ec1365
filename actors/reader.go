package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/storage/pin"
)

// All that the reader accepts, from uploaders: flush, and
//
// read asks for bytes of a file in memory: a slab's, or a slot's of a device. The same struct returns as the answer,
// data being exactly those bytes.
type read struct {
	by     string
	gen    uint64
	piece  *piece
	source source.Source
	from   int64
	bytes  int
	into   []byte // see uring.Request
	head   int
	memory *tenure // of a slot's memory
	reply  run.Edge[read]
	asked  time.Time // when it was passed on to the thread
	began  time.Time // when that passed it on to the disk
	ended  time.Time // when it came from there

	data []byte
	err  error
}

func (*read) Late() {}

// reader reads the models' files. A thread of its own drives the ring; the actor passes reads on to it and never
// waits for the disk.
type reader struct {
	system      *run.System
	log         zerolog.Logger
	slabs       *pin.Arena
	open        openDisk
	disk        *trace.Track
	out         readerUsers
	incarnation int
	gens        map[string]uint64 // by uploader
	io          *ioThread
}

func (r *reader) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		r.io = r.startIO()
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
		r.io = r.startIO()
		m.Done()
	case *read:
		if m.gen == r.gens[m.by] {
			m.asked = now()
			r.io.requests <- m // holds as many as can be under way: never blocks
		}
	default:
		r.system.Lifecycle(c)
	}
}
