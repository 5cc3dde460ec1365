package actors

import (
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Model says which model is run, and how. The zero value of a field that has a default stands for it.
// Wide: a user may say so much of one model.
type Model struct {
	Name string     // by which it is known; default: as its file says
	File *gguf.File // the house closes it
	KV   backend.KV // default: KVF16

	// Context is how many positions one request may hold. Default: what the model was trained for, as memory allows.
	Context int
	// Sequences is how many requests are computed at once. Default: 32.
	Sequences int
	// Blocks is the size of the KV cache. Default: one full context, and more for several sequences as memory allows.
	Blocks int
	// KVHost is how many bytes of the machine's memory there are for cached blocks that the KV cache has no room for: they
	// go there and come back, where they would have to be computed again. Default: none.
	KVHost int64
	// Rows is the most rows of a step. Default: 512.
	Rows int
	// Record, if set, is where the token trace goes (docs/traces.md); RecordIDsOnly leaves out texts.
	Record        io.Writer
	RecordIDsOnly bool
	// Weights is how many bytes weights may take, and the slots and slabs that they come through. What does not fit is
	// read from the file again for each step. Default: all are resident, if they fit the machine.
	Weights int64
	// VRAM is how many bytes weights may take of a device's own memory, with the slots that they come through. What does
	// not fit waits in the program's, as far as Weights goes. Default: all are there, if they fit.
	VRAM int64
	// Layers is how many are computed on a device that has a host: the last ones. The host computes the others.
	// Default: all, by the device. place.Auto: what is sooner, by Speeds, which is asked if not all have room there.
	Layers int
	// Experts is of how many layers the host of the device computes the experts, and the device all else: the first ones
	// that have any. Then Layers is 0. Default: of none.
	Experts int
	Speeds  func() (place.Speeds, error)
	// Progress, if set, is called from time to time while weights are loaded, and at the end.
	Progress func(done, total int64)
	// NoRepack computes from the file's own bytes, where they are mapped: no loading, no memory for weights, slower.
	NoRepack bool
	// Speculate has tokens guessed from what the answer and its prompt say, and steps try as many as are worth their rows.
	// Answers are the same.
	Speculate bool
}

// HouseConfig says which models are run, and on what.
type HouseConfig struct {
	Models []Model        // that are there from the start, planned together; of equal names the later ones get a number
	Device backend.Device // where they run; the house closes it
	Log    zerolog.Logger
	// Memory is how many bytes of the machine's there are for the models, beside what others were promised. Default, and
	// at most: what the machine says is available.
	Memory int64
	// Trace, if set, gets spans as a trace for Perfetto, from the start until the house is closed.
	Trace io.Writer

	hooks
}

// hooks are for tests; a nil one stands for what is usual.
type hooks struct {
	plan    func(*ir.Bound, *place.Model) // changes what was planned
	disk    tiers.OpenDisk
	late    time.Duration                       // how long a step waits for a drive
	masking func()                              // called by masks before each that it finds
	quick   int                                 // steps that grammars may take between two steps of the model
	propose func(prompt []int32) batch.Proposer // of the answer to a prompt
	took    time.Duration                       // what who guesses is told of each step, so that a test knows its choices
}

// Config is a house of one model.
type Config struct {
	Model
	Device backend.Device
	Log    zerolog.Logger
	Trace  io.Writer

	hooks
}
