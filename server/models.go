package server

import (
	"cmp"
	"iter"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
)

// one is a single model.
type one struct {
	name   string
	engine *actors.Engine
}

// One serves a single model; name is how clients know it, by default as its file does.
func One(e *actors.Engine, name string) answer.Models { return one{cmp.Or(name, e.Info.Name), e} }

func (o one) Names() []string { return []string{o.name} }

func (o one) Engine(name string) *actors.Engine {
	if name != o.name {
		return nil
	}
	return o.engine
}

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
