package server

import (
	"context"
	"iter"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/actors/fleet"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/stages/swap"
)

// fixed is engines that are there for good.
type fixed []*actors.Engine

// Engines serves some engines by their names, all of them different.
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

// Use has nothing to wait for.
func (f fixed) Use(_ context.Context, name string) (*actors.Engine, func(), error) {
	if e := f.Engine(name); e != nil {
		return e, func() {}, nil
	}
	return nil, nil, fleet.ErrUnknown
}

// Status is the same of all.
func (f fixed) Status(string) fleet.Status { return fleet.Status{Phase: swap.Ready} }

// engines are those that run now. The name tells one from another: it is empty if there is only one.
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
