package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/embed"
)

// Ranks says whether the model is a reranker: its vector of a text is one number, how well the text answers the query
// before it.
func (e *Engine) Ranks() bool {
	return e.Embeds() && e.spec.bound.Pooling == ir.PoolRank && e.spec.bound.OutputWidth() == 1
}

// Read encodes the text of a request that is to be embedded, and refuses one that does not fit. query is the tokens
// that stand before it, if any. stop is asked from time to time whether to give up.
func (e *Engine) Read(r Request, query []int32, stop func() bool) ([]int32, error) {
	p, err := e.spec.promptOf(&r, stop)
	if err != nil {
		return nil, err
	}
	tokens := p.Tokens
	if len(query) > 0 {
		tokens = e.spec.vocab.Pair(tokens)
	}
	_, err = e.spec.room.Scored(slices.Concat(query, tokens))
	return tokens, err
}

// Embed opens a request of a client for the output vectors of all positions of tokens, as Score does for logits. The
// vectors come in the order of the positions; Vector pools them.
func (e *Engine) Embed(client string, tokens []int32) (*Stream, error) {
	if !e.Embeds() {
		return nil, refusal.Of("%s generates text and has no embeddings: use a file of an embedding model", e.Info.Name)
	}
	return e.begin(Request{Client: client, Tokens: tokens}, true)
}

// Vector reads to its end a stream that Embed opened, and pools its rows to the text's vector as kind says.
func (e *Engine) Vector(ctx context.Context, s *Stream, kind ir.Pooling) ([]float32, error) {
	width := e.spec.bound.OutputWidth()
	p := embed.Pooler{Kind: kind}
	var ev Event
	for {
		err := s.Next(ctx, &ev)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for rows := ev.Logits; len(rows) > 0; rows = rows[width:] {
			p.Push(rows[:width])
		}
	}
	v := p.Vector()
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil, fmt.Errorf("number %d of a vector of %s is %v: is its file damaged", i, e.Info.Name, x)
		}
	}
	return v, nil
}

// Vectors returns the vector of each of some texts, which share steps. A text is its tokens.
func (e *Engine) Vectors(ctx context.Context, texts [][]int32, kind ir.Pooling) ([][]float32, error) {
	all := make([][]float32, 0, len(texts))
	for batch := range slices.Chunk(texts, textsTogether) {
		vectors, err := e.vectors(ctx, batch, kind)
		if err != nil {
			return nil, err
		}
		all = append(all, vectors...)
	}
	return all, nil
}

// textsTogether is how many texts are requested at once.
const textsTogether = 32

// vectors is Vectors of few texts, for each of which a request is open.
func (e *Engine) vectors(ctx context.Context, texts [][]int32, kind ir.Pooling) ([][]float32, error) {
	streams := make([]*Stream, len(texts))
	for i, ids := range texts {
		s, err := e.Embed("", ids)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		streams[i] = s
	}
	all := make([][]float32, len(texts))
	for i, s := range streams {
		v, err := e.Vector(ctx, s, kind)
		if err != nil {
			return nil, fmt.Errorf("text %d: %w", i+1, err)
		}
		all[i] = v
	}
	return all, nil
}
