package actors

import (
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/pin"
)

// core is what the actors of an engine know in common: the model's description, fixed before they start, and the
// few things that outlive an actor's restart. Each of the latter has one owner, named beside it.
type core struct {
	system *run.System
	log    zerolog.Logger
	turns  *run.Turns
	wiring *wiring

	file     *gguf.File
	bound    *ir.Bound
	groups   []ir.Group // what the device holds: each weight once
	vocab    *token.Vocab
	template *chat.Template
	backend  backend.Device
	layout   backend.Config
	limits   batch.Limits
	ctx      int

	slabs     *pin.Arena
	slabBytes int

	generation atomic.Uint64
	ids        atomic.Uint64        // of sequences
	model      backend.Model        // device; the uploader, its child, uses it
	computing  atomic.Pointer[step] // device: what it works on
	sampling   atomic.Pointer[step] // sampler: what it works on

	loadedBytes atomic.Int64
	stats       stats
}
