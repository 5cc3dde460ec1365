package measure

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
)

type Logits struct {
	compute.EngineFlags
	Tokens string   `required:"" placeholder:"IDS" help:"Token ids, such as 1,2,3."`
	Image  []string `name:"image" placeholder:"FILE" help:"Picture (PNG, JPEG, WebP, GIF) whose rows the ids hold places for, or one id that stands for all of them. Repeatable, in the order of the places."`
	env.ForceFlag
	Output string `short:"o" required:"" placeholder:"FILE" help:"File to write: little-endian float32, a row of the vocabulary's size for each token."`
}

func (Logits) Examples() [2]string {
	return [2]string{
		`sluice logits --tokens 1,2,3 -o logits.f32`,
		`sluice logits -m llava --image cat.png --kv f32 --tokens 1,32000,3 -o logits.f32`,
	}
}

func (c *Logits) Run(e *env.Env) error {
	out, err := e.Create(c.Output, c.Force, c.Model)
	if err != nil {
		return err
	}
	return env.Finish(out, c.Output, c.write(e, out))
}

func (c *Logits) write(e *env.Env, out io.Writer) error {
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	engine, err := c.Start(ctx, e, func(cfg *actors.Config) { cfg.Sequences, cfg.Speculate = 1, false })
	if err != nil {
		return err
	}
	defer compute.Shut(engine)
	ids, err := models.ParseIDs(c.Tokens, engine.Info.Vocab)
	if err != nil {
		return env.Usagef("--tokens: %v", err)
	}
	var pictures []actors.Picture
	for _, path := range c.Image {
		data, err := compute.ReadPicture(path)
		if err != nil {
			return err
		}
		pictures = append(pictures, actors.Picture{Encoded: data})
	}
	w := bufio.NewWriterSize(out, 1<<20)
	err = eachRowWith(ctx, engine, ids, pictures, func(_ int, row []float32) error {
		var word [4]byte
		for _, x := range row {
			binary.LittleEndian.PutUint32(word[:], math.Float32bits(x))
			if _, err := w.Write(word[:]); err != nil {
				return env.OnFile(c.Output, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return env.Unfit(c.Output, w.Flush())
}

// eachRow calls visit with the logits of each position in order.
func eachRow(ctx context.Context, engine *actors.Engine, ids []int32, visit func(pos int, row []float32) error) error {
	return eachRowWith(ctx, engine, ids, nil, visit)
}

// eachRowWith is eachRow of a prompt with pictures.
func eachRowWith(ctx context.Context, engine *actors.Engine, ids []int32, pictures []actors.Picture,
	visit func(pos int, row []float32) error) error {
	r, err := newRowReader(engine, ids, pictures...)
	if err != nil {
		return err
	}
	defer r.Close()
	for pos := 0; ; pos++ {
		row, err := r.next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(pos, row)
		}
		if err != nil {
			return err
		}
	}
}

// rowReader reads the logits of one position after the other.
type rowReader struct {
	*actors.Stream
	vocab int
	ev    actors.Event
	left  []float32 // of ev
}

func newRowReader(engine *actors.Engine, ids []int32, pictures ...actors.Picture) (*rowReader, error) {
	stream, err := engine.ScoreOf(actors.Request{Tokens: ids, Pictures: pictures})
	if err != nil {
		return nil, err
	}
	return &rowReader{Stream: stream, vocab: engine.Info.Vocab}, nil
}

// next returns the logits of the next position, valid until the next call; io.EOF: there is none.
func (r *rowReader) next(ctx context.Context) (row []float32, err error) {
	for len(r.left) == 0 {
		if err := r.Next(ctx, &r.ev); err != nil {
			return nil, err
		}
		r.left = r.ev.Logits
	}
	row, r.left = r.left[:r.vocab], r.left[r.vocab:]
	return row, nil
}
