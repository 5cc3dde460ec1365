package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"

	"github.com/sluice-ai/sluice/actors"
)

type logitsCmd struct {
	engineFlags
	Tokens string `required:"" placeholder:"IDS" help:"Token ids, such as 1,2,3."`
	Output string `short:"o" required:"" placeholder:"FILE" help:"File to write: little-endian float32, a row of the vocabulary's size for each token."`
}

func (logitsCmd) examples() [2]string {
	return [2]string{
		`sluice logits --tokens 1,2,3 -o logits.f32`,
		`sluice logits -m model.gguf --kv f32 --tokens 1,2,3 -o logits.f32`,
	}
}

func (c *logitsCmd) Run(e *env) error {
	ctx, cancel := e.interruptible(context.Background())
	defer cancel()
	engine, err := c.start(ctx, e, func(cfg *actors.Config) { cfg.Sequences = 1 })
	if err != nil {
		return err
	}
	defer shut(engine)
	ids, err := parseIDs(c.Tokens, engine.Info.Vocab)
	if err != nil {
		return usagef("--tokens: %v", err)
	}
	return writeLogits(ctx, engine, ids, c.Output)
}

func writeLogits(ctx context.Context, engine *actors.Engine, ids []int32, path string) error {
	out := &rowFile{path: path}
	err := eachRow(ctx, engine, ids, out.add)
	return out.end(err)
}

// rowFile is a file of rows. It is created with the first one: a request that is refused leaves what was there.
type rowFile struct {
	path string
	file *os.File
	w    *bufio.Writer
}

func (r *rowFile) add(_ int, row []float32) error {
	if r.file == nil {
		f, err := os.Create(r.path)
		if err != nil {
			return onFile(r.path, err)
		}
		r.file, r.w = f, bufio.NewWriterSize(f, 1<<20)
	}
	var word [4]byte
	for _, x := range row {
		binary.LittleEndian.PutUint32(word[:], math.Float32bits(x))
		if _, err := r.w.Write(word[:]); err != nil {
			return onFile(r.path, err)
		}
	}
	return nil
}

// end completes the file. After an error, which it returns, it removes what was written of a regular one, which nobody
// could tell from a whole one.
func (r *rowFile) end(err error) error {
	if r.file == nil {
		return err
	}
	if err == nil {
		if err = r.w.Flush(); err != nil {
			err = onFile(r.path, err)
		}
	}
	info, statErr := r.file.Stat()
	err = errors.Join(err, r.file.Close())
	if err != nil && statErr == nil && info.Mode().IsRegular() {
		_ = os.Remove(r.path) // the first error says more
	}
	return err
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
