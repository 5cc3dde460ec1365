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
	Tokens string `required:"" placeholder:"IDS" help:"Token ids, such as 1,2,3."`
	env.ForceFlag
	Output string `short:"o" required:"" placeholder:"FILE" help:"File to write: little-endian float32, a row of the vocabulary's size for each token."`
}

func (Logits) Examples() [2]string {
	return [2]string{
		`sluice logits --tokens 1,2,3 -o logits.f32`,
		`sluice logits -m model.gguf --kv f32 --tokens 1,2,3 -o logits.f32`,
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
	engine, err := c.Start(ctx, e, func(cfg *actors.Config) { cfg.Sequences = 1 })
	if err != nil {
		return err
	}
	defer compute.Shut(engine)
	ids, err := models.ParseIDs(c.Tokens, engine.Info.Vocab)
	if err != nil {
		return env.Usagef("--tokens: %v", err)
	}
	w := bufio.NewWriterSize(out, 1<<20)
	err = eachRow(ctx, engine, ids, func(_ int, row []float32) error {
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
	stream, err := engine.Score(ids)
	if err != nil {
		return err
	}
	defer stream.Close()
	vocab := engine.Info.Vocab
	var ev actors.Event
	for {
		err := stream.Next(ctx, &ev)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := 0; i < len(ev.Logits); i += vocab {
			if err := visit(ev.Pos+i/vocab, ev.Logits[i:i+vocab]); err != nil {
				return err
			}
		}
	}
}
