package measure

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/storage/imatrix"
)

type Imatrix struct {
	compute.EngineFlags
	File   string `short:"f" required:"" placeholder:"FILE" help:"Text to measure on: as much as possible of what the model will be used for; - is standard input."`
	Output string `short:"o" required:"" placeholder:"FILE" help:"Importance matrix to write (GGUF, as llama.cpp's)."`
	env.ForceFlag
	Chunk int `short:"c" default:"512" placeholder:"N" help:"Tokens of a chunk. Default: 512."`
	Most  int `name:"chunks" placeholder:"N" help:"Measure on the first N chunks only. Default: all."`

	out *safefile.File
}

func (Imatrix) Examples() [2]string {
	return [2]string{
		`sluice imatrix -m model-bf16.gguf -f text.txt -o imatrix.gguf`,
		`sluice quantize --imatrix imatrix.gguf model-bf16.gguf model-IQ4_XS.gguf IQ4_XS`,
	}
}

func (c *Imatrix) Run(e *env.Env) error {
	if err := checkChunks(c.Ctx, c.Chunk, c.Most); err != nil {
		return err
	}
	text, err := e.ReadFile(c.File, env.MostText)
	if err != nil {
		return err
	}
	if c.out, err = e.Create(c.Output, c.Force, c.Model, c.File); err != nil {
		return err
	}
	defer func() { c.out.Close() }()
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	c.OnProcessor() // which alone shows what goes into products
	var seen *observed
	engine, err := c.Start(ctx, e, func(cfg *actors.Config) {
		seen = &observed{Device: cfg.Device}
		cfg.Device, cfg.Sequences, cfg.Context = seen, 1, cmp.Or(cfg.Context, c.Chunk)
		cfg.Speculate = false
	})
	if err != nil {
		return err
	}
	save := func(chunks int) error {
		if c.out.Stream {
			return nil // it would get a matrix each time
		}
		_, err := c.write(seen, chunks)
		return err
	}
	chunks, stopped := c.measure(ctx, e, engine, strings.TrimSuffix(string(text), "\n"), save)
	compute.Shut(engine) // after it no step adds to the sums
	if chunks == 0 {
		return stopped
	}
	weights, err := c.write(seen, chunks)
	if err == nil {
		_, err = fmt.Fprintf(e.Stdout, "%s: importance of the columns of %s, by %s of %d tokens\n", env.Printable(c.Output),
			env.Count(weights, "weight"), env.Count(chunks, "chunk"), c.Chunk)
	}
	return cmp.Or(err, stopped)
}

// write writes the sums, and returns for how many weights. The result of a run that was stopped is valid, with fewer
// chunks.
func (c *Imatrix) write(seen *observed, chunks int) (weights int, err error) {
	entries, err := seen.entries()
	if err != nil {
		return 0, err
	}
	matrix := &imatrix.Matrix{Datasets: []string{c.File}, ChunkSize: c.Chunk, Chunks: chunks, Entries: entries}
	w := bufio.NewWriter(c.out)
	err = matrix.Write(w)
	if err = cmp.Or(err, w.Flush()); err == nil {
		err = c.out.Commit()
	}
	if err != nil {
		return 0, env.OnFile(c.Output, err)
	}
	if !c.out.Stream { // the next save replaces the file just made
		before := c.out
		if c.out, err = safefile.Create(c.Output, 0o666, true); err != nil {
			c.out = before
			return 0, env.OnFile(c.Output, err)
		}
		err = before.Close()
	}
	return len(entries), err
}

// saveEvery is the interval of saves: a failure of the machine loses no more work than that.
const saveEvery = time.Minute

// measure runs the model over the chunks of a text, each on an empty cache, and returns how many it finished. It calls
// save from time to time.
func (c *Imatrix) measure(ctx context.Context, e *env.Env, engine *actors.Engine, text string,
	save func(chunks int) error) (int, error) {
	chunks, _, err := chunksOf(engine.Vocab(), text, c.Chunk, c.Most)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.File, err)
	}
	bar := e.Progress("measuring")
	bar.Count = true
	defer bar.Clear()
	saved := e.Now()
	for i, chunk := range chunks {
		if err := eachRow(ctx, engine, chunk, func(int, []float32) error { return nil }); err != nil {
			return i, fmt.Errorf("%s: %w", c.File, err)
		}
		bar.Show(int64(i+1), int64(len(chunks)))
		if e.Now().Sub(saved) >= saveEvery {
			if err := save(i + 1); err != nil {
				return i + 1, err
			}
			saved = e.Now()
		}
	}
	return len(chunks), nil
}

// observed is a device that sums the inputs of its model's products.
type observed struct {
	backend.Device
	program *ir.Bound
	inputs  *backend.Inputs
	starts  int
}

func (o *observed) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	o.program, o.inputs = p, backend.NewInputs(p)
	o.starts++
	c.Inputs = o.inputs
	return o.Device.Compile(p, c)
}

// entries returns the sums by weight. No step may be running.
func (o *observed) entries() (map[string]imatrix.Entry, error) {
	if o.starts > 1 {
		return nil, fmt.Errorf("the device failed and was started again, so rows are missing: run this command again")
	}
	entries := map[string]imatrix.Entry{}
	for r, rows := range o.inputs.Rows {
		if slices.Max(append(rows, 0)) == 0 {
			continue // no matrix of a product
		}
		var entry imatrix.Entry
		for _, sum := range o.inputs.Squares[r] {
			entry.Squares = append(entry.Squares, float32(sum))
		}
		for _, n := range rows {
			entry.Counts = append(entry.Counts, float32(n))
		}
		entries[o.program.Weights[r].Name] = entry
	}
	return entries, nil
}
