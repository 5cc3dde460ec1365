package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/swap"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// loader opens the models of serve, and the house that they enter.
// Wide: it is what serve has chosen of models, beside the house and the budget that they share.
type loader struct {
	*compute.Flags
	e      *env.Env
	models catalog
	room   swap.Room

	collector int64 // the heap limit of GOMEMLIMIT; MaxInt64: none

	swapper  *actors.Swapper
	progress func(done, total int64) // of the first loads; nil: not reported
	edit     func(m *actors.Model)   // further settings of a model
	lora     compute.AdapterFlags    // adapters of each model that they fit
	adapters []string                // paths of adapters that each model may be asked for
	lone     bool                    // there is one model: they have to fit it
	spans    io.Writer               // of the first house's trace; nil: there is none

	cores *run.Cores // that texts share with pictures; nil: nothing makes pictures

	mu     sync.Mutex // held while a house is opened
	house  *actors.House
	device backend.Device // the house's
}

// waitingRequests is how many requests may wait for models.
const waitingRequests = 512

// openLoader opens a house without models, and finds out how much memory there is for models.
func openLoader(e *env.Env, f *compute.Flags, models catalog, keepAlive time.Duration, spans io.Writer,
	cores *run.Cores) (*loader, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	l := &loader{Flags: f, e: e, models: models, spans: spans, cores: cores,
		collector: debug.SetMemoryLimit(-1)}
	memory := mem.Available()
	house, err := l.House()
	if err != nil {
		return nil, err
	}
	l.room.Host = int64(f.RAM)
	if l.room.Host == 0 {
		l.room.Host = place.ForWeights(memory, false)
	}
	for _, t := range beyond(house.Traits()) {
		room := int64(f.VRAM)
		if room == 0 {
			room = place.ForWeights(t.Free, true)
		}
		l.room.Devices = append(l.room.Devices, room)
	}
	l.limitHeap(memory)
	limits := swap.Limits{Room: l.room, KeepAlive: keepAlive, Queue: waitingRequests}
	l.swapper = actors.NewSwapper(l, limits, f.Logger(e))
	return l, nil
}

// beyond lists the devices that have memory of their own, in the order of plans.
func beyond(t backend.Traits) []backend.Traits {
	switch {
	case t.Devices != nil:
		return t.Devices[1:]
	case t.Memory == backend.OwnMemory:
		return []backend.Traits{t}
	}
	return nil
}

// close unloads all models, and closes the house.
func (l *loader) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.swapper.Close(ctx) // nothing is left to wait for
	debug.SetMemoryLimit(l.collector)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.house == nil {
		return nil
	}
	return l.house.Close(ctx)
}

// House returns the house. It opens the device for it the first time, and again if the last house failed: whatever ran
// there has ended.
func (l *loader) House() (*actors.House, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.house != nil {
		err := l.house.Health()
		if err == nil {
			return l.house, nil
		}
		log := l.Logger(l.e)
		log.Error().Err(err).Msg("the device is opened again")
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = l.house.Close(ctx) // its error has been reported
		l.house = nil
	}
	device, err := l.OpenDevice(l.e)
	if err != nil {
		return nil, err
	}
	house, err := actors.Open(context.Background(), actors.HouseConfig{Device: device, Log: l.Logger(l.e), Trace: l.spans,
		Cores: l.cores})
	if err != nil {
		return nil, err
	}
	l.house, l.device, l.spans = house, device, nil
	return house, nil
}

// Names lists the models.
func (l *loader) Names() []string { return l.models.list() }

// file is the path of a model, as -m would name it.
func (l *loader) file(name string) (models.NamedFile, error) {
	path, ok := l.models.path(name)
	if !ok {
		return models.NamedFile{}, errors.New("its file is not there any more")
	}
	return models.NamedFile{Name: name, Path: path}, nil
}

// Model opens a model's file.
func (l *loader) Model(name string) (actors.Model, error) {
	m, err := l.configured(name)
	if err != nil {
		return m, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m.Speeds = compute.SpeedsOf(l.e, m.File, l.device)
	if err := l.AddDraft(l.e, &m, len(l.models.list()) > 1); err != nil {
		return m, errors.Join(err, m.File.Close())
	}
	if err := l.AddTower(l.e, &m, false); err != nil {
		return m, errors.Join(err, m.Close())
	}
	return m, nil
}

// open opens a model's file.
func (l *loader) open(name string) (*gguf.File, error) {
	at, err := l.file(name)
	if err != nil {
		return nil, err
	}
	return l.OpenWeights(l.e, at.Path)
}

// configured opens a model's file, with the settings of the flags.
func (l *loader) configured(name string) (m actors.Model, err error) {
	file, err := l.open(name)
	if err != nil {
		return m, err
	}
	if m, _, err = l.ModelOf(l.e, name, file); err != nil { // who enters it says the note
		return m, errors.Join(err, file.Close())
	}
	return m, nil
}

// Enter loads a model into a house.
func (l *loader) Enter(ctx context.Context, h *actors.House, name string, edit func(*actors.Model)) (
	*actors.Engine, error) {
	at, err := l.file(name)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	device, current := l.device, l.house
	l.mu.Unlock()
	if h != current {
		return nil, fmt.Errorf("the device was opened again meanwhile: try again")
	}
	e, err := l.Flags.Enter(ctx, l.e, h, device, at, func(m *actors.Model) {
		m.Progress = l.progress
		l.edit(m)
		edit(m)
	})
	if err == nil {
		l.limitHeap(h.Left())
		err = l.adapt(ctx, e)
	}
	return e, err
}

// adapt makes the adapters of the command line known to a model. Where there are several models, it runs without those
// that do not fit.
func (l *loader) adapt(ctx context.Context, e *actors.Engine) error {
	log := l.Logger(l.e)
	err := l.lora.AddTo(e, false)
	if err != nil && l.lone {
		return errors.Join(err, e.Leave(ctx))
	}
	if err != nil {
		log.Warn().Err(err).Str("model", e.Info.Name).Msg("it runs without this adapter, and those after it")
	}
	for _, path := range l.adapters {
		if err := e.AddAdapter(compute.AdapterOf(compute.AdapterName(path), path, 1, e.Metadata()), false); err != nil {
			log.Warn().Err(err).Str("model", e.Info.Name).Str("path", path).Msg("an adapter is not there for clients")
		}
	}
	return nil
}
