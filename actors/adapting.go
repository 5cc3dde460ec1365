package actors

import "github.com/sluice-ai/sluice/internal/refusal"

// AdapterState is what is told of an adapter that a model knows.
type AdapterState struct {
	ID         int
	Name, Path string
	Scale      float32 // in requests that name no adapters
	Bytes      int64   // of memory; 0: it is not loaded
	Open       int     // requests that use it
}

// Adapters lists the adapters that the model knows, by id.
func (e *Engine) Adapters() (all []AdapterState) {
	if e.spec.adapters == nil {
		return nil
	}
	e.spec.adapters.mu.Lock()
	defer e.spec.adapters.mu.Unlock()
	for id, a := range e.spec.adapters.known {
		if a == nil {
			continue
		}
		x := AdapterState{ID: id, Name: a.Name, Path: a.Path, Scale: a.scale, Open: a.open}
		if a.loaded != nil {
			x.Bytes = a.loaded.Bytes
		}
		all = append(all, x)
	}
	return all
}

// AddAdapter makes an adapter known, and with now loads it at once, so that what does not fit is an error here.
func (e *Engine) AddAdapter(a Adapter, now bool) error {
	if e.spec.adapters == nil {
		return errNoAdapters
	}
	if err := e.spec.adapters.add(a); err != nil || !now {
		return err
	}
	all, err := e.spec.adapters.take([]Adapting{{a.Name, 1}})
	if err != nil {
		e.spec.adapters.drop(a.Name)
		return err
	}
	e.spec.adapters.release(all)
	return nil
}

// DropAdapter forgets an adapter, and reports whether there was one.
func (e *Engine) DropAdapter(name string) bool {
	return e.spec.adapters != nil && e.spec.adapters.drop(name)
}

// ScaleAdapters sets the default scale of each adapter, for requests that name none. Adapters that scales leaves out
// get scale 0.
func (e *Engine) ScaleAdapters(scales map[int]float32) error {
	if e.spec.adapters == nil {
		return errNoAdapters
	}
	s := e.spec.adapters
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range scales {
		if id < 0 || id >= len(s.known) || s.known[id] == nil {
			return refusal.Of("there is no adapter of id %d", id)
		}
	}
	for id, a := range s.known {
		if a != nil {
			a.scale = scales[id]
		}
	}
	return nil
}
