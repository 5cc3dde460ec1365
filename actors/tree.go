package actors

import (
	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/batch"
)

// tree is what the actors of one engine share: the system they run on, its turns, and their addresses.
type tree struct {
	system *run.System
	log    zerolog.Logger
	turns  *run.Turns

	engine, sessions, scheduler, kv, sampler *actor.PID
	device, uploader, packer, prefetcher     *actor.PID
	reader, pool                             *actor.PID
}

func newTree(log zerolog.Logger, crowded bool) *tree {
	system := run.NewSystem(log)
	pid := system.Address
	return &tree{
		system: system, log: log,
		turns:  run.NewTurns(crowded, batch.Window/4), // waiting must not use up a client's credit
		engine: pid("engine"), sessions: pid("engine/sessions"),
		scheduler: pid("engine/scheduler"), kv: pid("engine/kv"), sampler: pid("engine/sampler"),
		reader: pid("engine/reader"), pool: pid("engine/pool"), device: pid("engine/device"),
		uploader: pid("engine/device/uploader"), packer: pid("engine/device/packer"),
		prefetcher: pid("engine/device/prefetcher"),
	}
}

// line is where an actor of a kind takes turns: those of a step, and those that deliver its tokens.
func (t *tree) line(kind string) *run.Line {
	switch kind {
	case "scheduler", "kv", "device", "sampler":
		return &t.turns.Steps
	case "session":
		return &t.turns.Outlets
	}
	return nil
}
