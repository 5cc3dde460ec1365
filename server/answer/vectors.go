package answer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/embed"
)

// MaxTexts bounds the number of texts of a request for vectors.
const MaxTexts = 2048

// Text is a text to be read. Tokens counts if it is set, else Text.
type Text struct {
	Text   string
	Tokens []int32
}

// Reading is a decoded request for vectors.
type Reading struct {
	Model *Model
	Query string // put before each text, for models that rank
	Texts []Text // dropped after they are tokenized, unless Kept is set
	Kept  bool   // the answer repeats the texts
	Field string // name of the request's field with the texts, for faults
	Last  bool   // the model is to be unloaded afterwards
	Most  int    // tokens of a text, with the query before it, besides what the model takes; 0: no such limit
	Cuts  bool   // a text that is too long loses its end, instead of being refused
	Unit  int    // vectors are cut to so many numbers, then scaled to length 1; 0: they stay as the model gives them
}

// Vectors holds the vectors of texts, in the order of the texts.
type Vectors struct {
	Rows   [][]float32
	Tokens int // tokens of all texts, with the query before each
}

// Vectors computes the vectors of texts in parallel, as many at a time as the client's quota of places grants.
func (s *Service) Vectors(x *exchange.Exchange, r *Reading) (*Vectors, *wire.Fault) {
	x.Watch()
	var query []int32
	var tokens [][]int32
	var fault *wire.Fault
	err := x.Large(func(func() bool) error {
		query, tokens, fault = r.tokens(x)
		return nil
	})
	x.Release()
	switch {
	case err != nil:
		return nil, explain(x, &Order{Model: r.Model}, err)
	case fault != nil:
		return nil, fault
	}
	k, v := keep(s.kept, x), &Vectors{Rows: make([][]float32, len(tokens))}
	weight := int64(0)
	if r.Kept {
		for _, t := range r.Texts {
			weight += int64(len(t.Text))
		}
	} else {
		r.Texts = nil
	}
	if err = k.add(x.Context, weight); err == nil {
		err = v.compute(x, r.Model, query, tokens, k)
	}
	if err != nil {
		return nil, explain(x, &Order{Model: r.Model}, err)
	}
	if r.Unit > 0 {
		for i := range v.Rows {
			v.Rows[i] = v.Rows[i][:r.Unit]
			embed.Normalize(v.Rows[i]) // zeros stay
		}
	}
	for _, ids := range tokens {
		v.Tokens += len(query) + len(ids)
	}
	x.Prompt = v.Tokens
	return v, nil
}

// tokens tokenizes the query and each text.
func (r *Reading) tokens(x *exchange.Exchange) (query []int32, all [][]int32, fault *wire.Fault) {
	gone := func() bool { return x.Context.Err() != nil }
	read := func(t Text, field string) []int32 {
		ids, err := r.encode(t, query, gone)
		if err != nil {
			fault = explain(x, &Order{Model: r.Model}, err)
			fault.Param, fault.Text = r.Field, field+": "+fault.Text
		}
		return ids
	}
	if r.Query != "" {
		if query = read(Text{Text: r.Query}, "query"); fault != nil {
			fault.Param = "query"
			return nil, nil, fault
		}
	}
	all = make([][]int32, len(r.Texts))
	for i, t := range r.Texts {
		if all[i] = read(t, fmt.Sprintf("%s, entry %d", r.Field, i)); fault != nil {
			return nil, nil, fault
		}
	}
	return query, all, nil
}

// encode tokenizes a text. Of one that is too long and may be cut it takes the longest beginning that is not, to within
// a rune.
func (r *Reading) encode(t Text, query []int32, gone func() bool) ([]int32, error) {
	read := func(n int) ([]int32, error) {
		ids, err := r.Model.Engine.Read(actors.Request{Text: t.Text[:n], Tokens: t.Tokens, PlainText: true}, query, gone)
		if n := len(query) + len(ids); err == nil && r.Most > 0 && n > r.Most {
			return nil, refusal.TooLong("there are %d tokens, and num_ctx is %d: ask for a larger one", n, r.Most)
		}
		return ids, err
	}
	ids, err := read(len(t.Text))
	var long *refusal.Error
	if !r.Cuts || !errors.As(err, &long) || !long.TooLong {
		return ids, err
	}
	for low, high := 0, len(t.Text)-1; low < high; {
		n := (low + high + 1) / 2
		start := n
		for start > 0 && !utf8.RuneStart(t.Text[start]) {
			start--
		}
		some, fault := read(start)
		switch {
		case fault == nil:
			ids, err, low = some, nil, n
		case errors.As(fault, &long) && long.TooLong:
			high = n - 1
		default:
			return nil, fault
		}
	}
	if err != nil {
		return read(0)
	}
	return ids, nil
}

// compute fills the rows of v. The first error stops it.
func (v *Vectors) compute(x *exchange.Exchange, m *Model, query []int32, tokens [][]int32, k *unstreamed) error {
	ctx, cancel := context.WithCancelCause(x.Context)
	defer cancel(nil)
	var next atomic.Int64
	work := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		for {
			i := int(next.Add(1)) - 1
			if i >= len(tokens) || ctx.Err() != nil {
				return nil
			}
			row, err := vector(ctx, x, m, slices.Concat(query, tokens[i]))
			if err == nil {
				err = k.add(ctx, int64(4*cap(row)))
			}
			if err != nil {
				return err
			}
			v.Rows[i] = row
		}
	}
	var all sync.WaitGroup
	for range min(len(tokens), m.Engine.Info.Sequences+following) {
		all.Go(func() {
			if err := work(); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// vector waits for a place and computes the vector of one text, of the model's width.
func vector(ctx context.Context, x *exchange.Exchange, m *Model, tokens []int32) ([]float32, error) {
	if err := m.places.take(ctx, x, 1); err != nil {
		return nil, err
	}
	defer m.places.leave(x, 1)
	stream, err := m.Engine.Embed(x.Client, tokens)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	row, err := m.Engine.Vector(ctx, stream, m.Engine.Info.Program.Pooling)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return row, err
}
