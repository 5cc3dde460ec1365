package answer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/grammar"
)

// formBytes bounds the memory of compiled forms that are kept for later requests, in bytes.
const formBytes = 32 << 20

// forms caches compiled forms for all requests. A request that waits for a place holds only the source of its form. A
// form that is not cached is compiled once for all requests that want it, when the client of the first of them gets a
// turn.
type forms struct {
	mu     sync.Mutex
	kept   map[constrain.Key]*keptForm
	bytes  int64 // of all that are kept
	uses   uint64
	making map[constrain.Key]chan struct{} // closed when the form is compiled, or has failed to be
}

type keptForm struct {
	*grammar.Form
	used uint64 // value of forms.uses at its last use
}

func newForms() *forms {
	return &forms{kept: map[constrain.Key]*keptForm{}, making: map[constrain.Key]chan struct{}{}}
}

// turn waits for a client's turn to compile; done ends the turn.
type turn func(context.Context) (done func(), err error)

// get returns the compiled form of f, and waits for it no longer than ctx.
func (s *forms) get(ctx context.Context, by turn, f *constrain.Form) (*grammar.Form, error) {
	for {
		form, others := s.look(f.Key)
		switch {
		case form != nil:
			return form, nil
		case others == nil:
			return s.make(ctx, by, f)
		}
		select {
		case <-others:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// look returns a cached form, or a channel that closes when another request has compiled it. If both are nil, the
// caller has to compile it.
func (s *forms) look(key constrain.Key) (form *grammar.Form, others chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kept[key]; k != nil {
		s.uses++
		k.used = s.uses
		return k.Form, nil
	}
	if others = s.making[key]; others == nil {
		s.making[key] = make(chan struct{})
	}
	return nil, others
}

func (s *forms) make(ctx context.Context, by turn, f *constrain.Form) (form *grammar.Form, err error) {
	defer func() { s.done(f.Key, form) }()
	end, err := by(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if form, err = f.Make(); err != nil {
		return nil, faultOf(f, err)
	}
	return form, nil
}

// done caches a form, unless it is nil, and wakes the requests that wait for it.
func (s *forms) done(key constrain.Key, form *grammar.Form) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.making[key])
	delete(s.making, key)
	if form == nil {
		return
	}
	s.uses++
	s.kept[key] = &keptForm{form, s.uses}
	for s.bytes += form.Size(); s.bytes > formBytes; {
		s.forget()
	}
}

// forget evicts the least recently used form. Answers that are constrained by it go on.
func (s *forms) forget() {
	var oldest constrain.Key
	least := s.uses + 1
	for key, k := range s.kept {
		if k.used < least {
			oldest, least = key, k.used
		}
	}
	s.bytes -= s.kept[oldest].Size()
	delete(s.kept, oldest)
}

// formFault is an error in a form, with the field that it came from.
type formFault struct {
	field string // field of the request that holds the form
	err   error
}

func (f *formFault) Error() string { return fmt.Sprintf("%s: %v", f.field, f.err) }

// faultOf returns the fault that the client is told when a form cannot be compiled.
func faultOf(f *Form, err error) error {
	var user *refusal.Error
	if errors.As(err, &user) {
		return err // its text is written for the user
	}
	return &formFault{f.Field, err}
}
