package actors

import (
	"cmp"
	"errors"
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/kv"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Model is the configuration of one model. A field's zero value stands for its default, if it has one.
// Wide: a user may say so much of one model.
type Model struct {
	Name string     // the name by which clients ask for it; default: the name in its file
	File *gguf.File // the house closes it
	KV   backend.KV // default: KVF16

	// Context is how many positions one request may hold. Default: what the model was trained for, as memory allows.
	Context int
	// Sequences is how many requests are computed at once. Default: 32.
	Sequences int
	// Blocks is the size of the KV cache. Default: one full context, and more for several sequences as memory allows.
	Blocks int
	// KVHost is how many bytes of host memory may hold cached blocks for which the KV cache has no room: they are
	// copied there and back instead of being dropped and computed again. Default: none.
	KVHost int64
	// Kept is where blocks of the cache are kept that outlive the process. Default: nowhere.
	Kept Kept
	// News, if set, is called for changes of what prompts can begin with, in order, between two steps: it must not wait
	// for anything.
	News func([]kv.News)
	// Rows is the most rows of a step. Default: 512.
	Rows int
	// Tapes are where the token trace goes (docs/traces.md).
	Tapes []*Tape
	// Weights is how many bytes weights may take, with the slots and slabs through which they come. What does not fit
	// is read from the file again for each step. Default: all are resident, if they fit the machine.
	Weights int64
	// VRAM is how many bytes weights may take of a device's own memory, with the slots that they come through. What
	// does not fit is kept in host memory, as far as Weights allows. Default: all weights are in device memory, if
	// they fit.
	VRAM int64
	// Layers is how many layers a device that has a host computes: the last ones. The host computes the others.
	// Default: the device computes all. place.Auto: whatever is faster by Speeds, which is called if not all layers
	// fit the device.
	Layers int
	// Experts is the number of layers whose experts the host computes, while the device computes all else: the first
	// layers that have experts. Then Layers is 0. Default: none.
	Experts int
	Speeds  func() (place.Speeds, error)
	// Progress, if set, is called from time to time while weights are loaded, and at the end.
	Progress func(done, total int64)
	// NoRepack computes from the file's own bytes, where they are mapped: no loading, no memory for weights, slower.
	NoRepack bool
	// Speculate turns speculative decoding on: tokens are guessed from the answer so far and its prompt, and steps
	// verify as many as are worth their rows. Answers are the same.
	Speculate bool
	// Draft is the file of a smaller model with the same vocabulary, which guesses tokens as well, if Speculate is set.
	// The draft model shares this model's memory budget, and enters and leaves the house with it. The house closes its
	// file. With DraftOnly all guesses are the draft model's, and none come from the text.
	Draft     *gguf.File
	DraftOnly bool
	// Heads says that Draft is a share of File: what guesses is the head in it that predicts tokens further on (MTP), from
	// the model's hidden states. See HasHead. With HeadsIfFit the model runs without where the head finds no memory, or
	// where because of it weights would have to be streamed.
	Heads, HeadsIfFit bool
	head              bool // it is such a head itself
	// Adapted has the model take adapters (LoRA): see Engine.AddAdapter. Adapters is how many bytes of host memory they
	// may take; default: AdapterMemory.
	Adapted  bool
	Adapters int64
	// Own are adapters that change all answers, beside those that requests name.
	Own []Adapter
	// Tower is the mmproj file, by which the model sees pictures. The house closes it. Default: the model does not see.
	// With TowerIfFits the model runs without a tower that cannot be used; Info.Blind then says why.
	Tower       *gguf.File
	TowerIfFits bool
}

// Close closes the files of a model that does not enter a house.
func (m *Model) Close() error {
	err := m.File.Close()
	for _, f := range []*gguf.File{m.Draft, m.Tower} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// HouseConfig is the configuration of a house: its models and its device.
type HouseConfig struct {
	Models []Model        // that are there from the start, planned together; of equal names the later ones get a number
	Device backend.Device // where they run; the house closes it
	Log    zerolog.Logger
	// Memory is how many bytes of host memory the models may use, beside what is promised to others. Default, and at
	// most: what the machine says is available.
	Memory int64
	// Trace, if set, gets spans as a trace for Perfetto, from the start until the house is closed.
	Trace io.Writer
	// Cores, if set, are shared with others that compute there: steps take turns with them.
	Cores *run.Cores

	hooks
}

// hooks replace parts of the engine in tests; nil or zero: the usual part.
type hooks struct {
	plan    func(*ir.Bound, *place.Model) // changes the plan
	disk    tiers.OpenDisk
	late    time.Duration                       // how long a step waits for a drive; see usuallyLate
	masking func()                              // called by masks before it finds each mask
	quick   int                                 // steps that grammars may take between two steps of the model
	propose func(prompt []int32) batch.Proposer // of the answer to a prompt
	took    time.Duration                       // the time that guessing is told for each step of a test
}

// Config is the configuration of a house of one model.
type Config struct {
	Model
	Device backend.Device
	Log    zerolog.Logger
	Trace  io.Writer

	hooks
}

// adapted says whether the model's program has places for adapters.
func (m *Model) adapted() bool { return m.Adapted || len(m.Own) > 0 }

// adapterMemory is what adapters may take; 0: the model takes none.
func (m *Model) adapterMemory() int64 {
	if !m.adapted() {
		return 0
	}
	return cmp.Or(m.Adapters, AdapterMemory)
}

// adaptersOn is what adapters may take of each device's memory: of a card's own no more than an eighth, from which
// those leave that no step needs.
func (m *Model) adaptersOn(devices []backend.Traits) []int64 {
	if !m.adapted() {
		return nil
	}
	all := make([]int64, len(devices))
	for d := range devices {
		if all[d] = m.adapterMemory(); devices[d].Free > 0 {
			all[d] = min(all[d], devices[d].Free/8)
		}
	}
	return all
}

// AdapterMemory is how many bytes adapters of a model may take, if Model.Adapters does not say it.
const AdapterMemory = 1 << 30
