package serve

import (
	"errors"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/namedmodel"
)

// described are the loader's models, with what their files say of them: those that are not loaded, too.
type described struct {
	*actors.Swapper
	loader *loader

	mu    sync.Mutex // held while a header is read: one at a time
	known map[string]*seen
}

// seen is what is known of one model.
type seen struct {
	looked time.Time        // when the file was last seen to be the same
	state  namedmodel.State // of the file that was read
	header *actors.Header
}

// describe makes the models of a loader that serves them.
func describe(l *loader) *described {
	return &described{Swapper: l.swapper, loader: l, known: map[string]*seen{}}
}

// Header implements answer.Models. A file is read once, and again when it has changed.
func (d *described) Header(name string) *actors.Header {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, err := d.loader.file(name)
	if err != nil {
		delete(d.known, name)
		return nil
	}
	now := d.loader.e.Now()
	is := d.known[name]
	if is != nil && now.Sub(is.looked) < fresh {
		return is.header
	}
	state := namedmodel.StateOf(d.loader.e.Lookup, at.Path)
	if is == nil || is.state != state {
		is = &seen{state: state}
		if is.header, err = d.read(name, state); err != nil {
			log := d.loader.Logger(d.loader.e)
			log.Debug().Str("model", name).Err(err).Msg("its file cannot be described")
		}
		d.known[name] = is
	}
	is.looked = now
	return is.header
}

// read reads the header of a model's file; nil, with the reason, if that cannot be read.
func (d *described) read(name string, state namedmodel.State) (h *actors.Header, err error) {
	file, err := d.loader.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if h, err = d.loader.HeaderOf(name, file); err != nil {
		return nil, err
	}
	h.Modified = state.Modified
	return h, nil
}
