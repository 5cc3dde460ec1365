package server

import (
	"context"
	"errors"
	"iter"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/stages/swap"
)

// fixed is a list of engines that run as long as the server.
type fixed []*actors.Engine

// Engines serves a fixed list of engines by their names, which must differ.
func Engines(all ...*actors.Engine) answer.Models { return fixed(all) }

func (f fixed) Names() []string {
	names := make([]string, len(f))
	for i, e := range f {
		names[i] = e.Info.Name
	}
	return names
}

func (f fixed) Engine(name string) *actors.Engine {
	for _, e := range f {
		if e.Info.Name == name {
			return e
		}
	}
	return nil
}

// Use implements answer.Models. The engines always run, so it never waits.
func (f fixed) Use(_ context.Context, name string) (*actors.Engine, func(), error) {
	if e := f.Engine(name); e != nil {
		return e, func() {}, nil
	}
	return nil, nil, actors.ErrUnknown
}

// Unload implements answer.Models: engines of a fixed list stay.
func (f fixed) Unload(name string) error {
	if f.Engine(name) == nil {
		return actors.ErrUnknown
	}
	return errors.New("models of this server stay loaded until it ends")
}

// Status implements answer.Models: every engine is ready.
func (f fixed) Status(string) actors.ModelStatus { return actors.ModelStatus{Phase: swap.Ready} }

// Header implements answer.Models.
func (f fixed) Header(name string) *actors.Header {
	if e := f.Engine(name); e != nil {
		return e.Header()
	}
	return nil
}

// engines yields the engines that run now with their models' names; the name is empty if there is only one.
func engines(m answer.Models) iter.Seq2[string, *actors.Engine] {
	return func(yield func(string, *actors.Engine) bool) {
		names := m.Names()
		for _, name := range names {
			e := m.Engine(name)
			if len(names) == 1 {
				name = ""
			}
			if e != nil && !yield(name, e) {
				return
			}
		}
	}
}
