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

// formBytes is what forms that nobody may need any more take together.
const formBytes = 32 << 20

// forms keeps what answers were lately bound to be, compiled, for all requests: who waits for a place among those that
// are computed has the words of its form alone. What is missing is made by turns of clients, once for all that want it.
type forms struct {
	mu     sync.Mutex
	kept   map[constrain.Key]*keptForm
	bytes  int64 // of all that are kept
	uses   uint64
	making map[constrain.Key]chan struct{} // closed when who makes it is done
}

type keptForm struct {
	*grammar.Form
	used uint64 // by number of the use
}

func newForms() *forms {
	return &forms{kept: map[constrain.Key]*keptForm{}, making: map[constrain.Key]chan struct{}{}}
}

// turn waits for the turn of who wants something made, until done is called.
type turn func(context.Context) (done func(), err error)

// get returns what a form is compiled to, for who waits no longer than ctx.
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

// look finds a form, or who makes it. Where nobody does, the caller has to.
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

// done keeps a form, unless it is nil, and has others look again.
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

// forget lets go of the form that nobody has used for longest. Programs that follow it go on.
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

// formFault is why a form cannot be kept.
type formFault struct {
	field string // of the request that says what it is
	err   error
}

func (f *formFault) Error() string { return fmt.Sprintf("%s: %v", f.field, f.err) }

// faultOf is what is told of a form that cannot be made.
func faultOf(f *Form, err error) error {
	var user *refusal.Error
	if errors.As(err, &user) {
		return err // it has words of its own
	}
	return &formFault{f.Field, err}
}
