package answer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/server/quota"
	"github.com/sluice-ai/sluice/stages/grammar"
)

// workshop has one place, in which forms are made as the test lets them.
type workshop struct {
	*quota.Pool
	let  chan error
	made map[string]int // by text
}

func newWorkshop() *workshop {
	return &workshop{quota.NewPool(1, 1000), make(chan error), map[string]int{}}
}

func (w *workshop) of(client string) turn {
	return func(ctx context.Context) (func(), error) {
		return func() { w.Give(client, 1) }, w.Take(ctx, client, 1, 1)
	}
}

// form is one that is made when the test lets it.
func (w *workshop) form(text string) *Form {
	f := GrammarForm("grammar", text)
	compile := f.Make
	f.Make = func() (*grammar.Form, error) {
		w.made[text]++
		if err := <-w.let; err != nil {
			return nil, err
		}
		return compile()
	}
	return f
}

// ask asks in the background.
func (w *workshop) ask(ctx context.Context, s *forms, client, text string) chan error {
	got := make(chan error, 1)
	go func() {
		_, err := s.get(ctx, w.of(client), w.form(text))
		got <- err
	}()
	synctest.Wait()
	return got
}

const anA, aB = `root ::= "a"`, `root ::= "b"`

// TestFormIsMadeOnce: many that want one form have it made once, and later ones find it.
func TestFormIsMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newForms(), newWorkshop()
		var all []chan error
		for i := range 50 {
			all = append(all, w.ask(t.Context(), s, fmt.Sprint(i%3), anA))
		}
		require.Equal(t, map[string]int{anA: 1}, w.made)
		require.Zero(t, w.Waiting(), "who waits for what is made already needs no turn")
		w.let <- nil
		for _, got := range all {
			require.NoError(t, <-got)
		}
		require.NoError(t, <-w.ask(t.Context(), s, "late", anA))
		require.Equal(t, map[string]int{anA: 1}, w.made)
		require.Zero(t, w.Used())
	})
}

// TestFormsTakeTurns: one is made at a time, and who has fewest that wait is not behind all others.
func TestFormsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newForms(), newWorkshop()
		var greedy []chan error
		for i := range 20 {
			greedy = append(greedy, w.ask(t.Context(), s, "greedy", fmt.Sprintf(`root ::= "%d"`, i)))
		}
		modest := w.ask(t.Context(), s, "modest", anA)
		require.Len(t, w.made, 1)
		w.let <- nil
		w.let <- nil
		require.NoError(t, <-modest)
		require.Len(t, greedy[1], 0)
		for range 19 {
			w.let <- nil
		}
		for _, got := range greedy {
			require.NoError(t, <-got)
		}
		require.Len(t, w.made, 21)
		require.Zero(t, w.Used())
	})
}

// TestFormOfWhoLeaves: who leaves while its form waits to be made gives its turn up, and others that want the form
// get it.
func TestFormOfWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newForms(), newWorkshop()
		gone := errors.New("gone")
		ctx, leave := context.WithCancelCause(t.Context())
		busy := w.ask(t.Context(), s, "busy", aB)
		first := w.ask(ctx, s, "first", anA)
		follower := w.ask(ctx, s, "first", anA)
		other := w.ask(t.Context(), s, "other", anA)
		require.Equal(t, 1, w.Waiting())
		leave(gone)
		require.ErrorIs(t, <-first, gone)
		require.ErrorIs(t, <-follower, gone)
		w.let <- nil
		require.NoError(t, <-busy)
		w.let <- nil
		require.NoError(t, <-other)
		require.Zero(t, w.Used())
		require.Empty(t, s.making)
	})
}

// TestFaultyForm: an error names the field, is not kept, and nothing waits for it.
func TestFaultyForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newForms(), newWorkshop()
		for _, fault := range []error{errors.New("too large"), &refusal.Error{Text: "too large"}} {
			got := w.ask(t.Context(), s, "a", anA)
			w.let <- fault
			err := <-got
			require.ErrorContains(t, err, "too large")
			var user *refusal.Error
			require.Equal(t, !errors.As(err, &user), strings.HasPrefix(err.Error(), "grammar: "))
		}
		require.Empty(t, s.kept)
		require.Empty(t, s.making)
		require.Zero(t, w.Used())
	})
}

// TestFormsAreBounded: those that nobody used for longest go, and all that is kept takes no more than it may.
func TestFormsAreBounded(t *testing.T) {
	s := newForms()
	free := func(context.Context) (func(), error) { return func() {}, nil }
	made := 0
	get := func(i int) {
		f := GrammarForm("f", fmt.Sprintf(`root ::= "%d" "a"{0,18000} "b"{0,16000}`, i))
		compile := f.Make
		f.Make = func() (*grammar.Form, error) { made++; return compile() }
		_, err := s.get(t.Context(), free, f)
		require.NoError(t, err)
		require.LessOrEqual(t, s.bytes, int64(formBytes))
	}
	for i := range 20 {
		get(i)
		get(0)
	}
	require.Equal(t, 20, made, "what is used stays")
	require.Less(t, len(s.kept), 20)
	get(1)
	require.Equal(t, 21, made)
	sum := int64(0)
	for _, k := range s.kept {
		sum += k.Size()
	}
	require.Equal(t, sum, s.bytes)
}
