package actors

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/synth"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// A prompt begins with one BOS where the model wants one: whether the template spells it out, or leaves it to the
// encoder. A vocabulary that has none to spell is no reason to leave out its EOS.
func TestOneBOS(t *testing.T) {
	const bos = 7
	for _, c := range []struct {
		name, template   string
		addBOS, addEOS   bool
		specials, copies int // tokens beside the content's; how many BOS are among them
	}{
		{"the encoder's", `{{ messages[0].content }}`, true, false, 1, 1},
		{"the template's", `{{ bos_token }}{{ messages[0].content }}`, true, false, 1, 1},
		{"two in the template", `{{ bos_token }}{{ messages[0].content }}{{ bos_token }}`, true, false, 2, 2},
		{"not at its beginning", `{{ messages[0].content }}{{ bos_token }}`, true, false, 2, 2},
		{"the template's alone", `{{ bos_token }}{{ messages[0].content }}`, false, false, 1, 1},
		{"none to spell", `{{ bos_token }}{{ messages[0].content }}`, false, true, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := gguf.Open(fixturePath(t, fixture))
			require.NoError(t, err)
			f.Meta.Set("tokenizer.chat_template", c.template)
			f.Meta.Set("tokenizer.ggml.add_bos_token", c.addBOS)
			f.Meta.Set("tokenizer.ggml.add_eos_token", c.addEOS)
			if c.copies > 0 {
				kinds, err := f.Meta.Ints("tokenizer.ggml.token_type")
				require.NoError(t, err)
				control := make([]int32, len(kinds))
				for i, kind := range kinds {
					control[i] = int32(kind)
				}
				control[bos] = 3
				f.Meta.Set("tokenizer.ggml.token_type", control)
				f.Meta.Set("tokenizer.ggml.bos_token_id", uint32(bos))
			} else {
				without := new(meta.Map)
				for _, key := range f.Meta.Keys() {
					if value, _ := f.Meta.Get(key); key != "tokenizer.ggml.bos_token_id" {
						without.Set(key, value)
					}
				}
				f.Meta = *without
			}
			e := startFile(t, f, nil)
			const content = "A text of several tokens."
			text, err := e.Vocab().Encode(nil, content, token.Options{})
			require.NoError(t, err)
			s := begin(t, e, Request{Chat: &chat.Input{Messages: []chat.Message{chat.Say("user", content)}},
				MaxTokens: 1, Sampling: greedy(), IgnoreEOG: true})
			require.Equal(t, len(text)+c.specials, collect(t, s).usage.Prompt)
		})
	}
}

// uploads is a device that keeps what it is given, in rows of a grain as large as the engine promises for slabs.
type uploads struct {
	nullDevice
	weights *sync.Map // by ir.Ref: *arrived
	bound   *ir.Bound
}

func (d *uploads) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	d.bound = p
	m, err := d.nullDevice.Compile(p, c)
	return uploadsModel{m, d}, err
}

type uploadsModel struct {
	backend.Model
	d *uploads
}

const tallGrain = 64

func (uploadsModel) RowGrain() int { return tallGrain }

func (m uploadsModel) Upload(ref ir.Ref, row int, data []byte) error {
	if row%tallGrain != 0 {
		return fmt.Errorf("row %d is not a multiple of the grain", row)
	}
	_, twice := m.d.weights.LoadOrStore([2]int{int(ref), row}, bytes.Clone(data))
	if twice {
		return fmt.Errorf("row %d came twice", row)
	}
	return nil
}

// Rows so long that a slab of the least size has no room for the grain: slabs are as large as the grain needs, and
// every byte arrives once.
func TestSlabsHoldTheGrain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wide.gguf")
	wideModel(t, path)
	f, err := gguf.Open(path)
	require.NoError(t, err)
	d := &uploads{weights: new(sync.Map)}
	startFile(t, f, func(c *Config) {
		require.NoError(t, c.Device.Close())
		c.Device, c.Log = d, zerolog.Nop()
	})
	for ref, w := range d.bound.Weights {
		tensor := &f.Tensors[d.bound.Tensors[ref]]
		want, row := f.Bytes(tensor), 0
		rowBytes := len(want) / w.Rows
		for row < w.Rows {
			got, ok := d.weights.LoadAndDelete([2]int{ref, row})
			require.True(t, ok, "%s: row %d did not come", w.Name, row)
			rows := len(got.([]byte)) / rowBytes
			require.Equal(t, want[row*rowBytes:][:rows*rowBytes], got, "%s: row %d", w.Name, row)
			row += rows
		}
		require.Equal(t, w.Rows, row, w.Name)
	}
	d.weights.Range(func(key, _ any) bool { t.Errorf("%v came without need", key); return true })
}

// wideModel writes a model whose rows are 8 KiB long, and which is small otherwise.
func wideModel(t *testing.T, path string) {
	config, err := synth.Parse([]byte(`{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 2048,
		"intermediate_size": 200, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 520,
		"max_position_embeddings": 512, "rms_norm_eps": 1e-5, "tie_word_embeddings": true}`))
	require.NoError(t, err)
	md := config.Meta("wide")
	from, err := gguf.Open(fixturePath(t, fixture))
	require.NoError(t, err)
	defer from.Close()
	require.NoError(t, synth.Vocabulary(md, &from.Meta, config.Vocab))
	program, err := arch.Record(md, config.Has, arch.Options{})
	require.NoError(t, err)
	byName := map[string]*synth.Tensor{}
	var tensors []gguf.Tensor
	for _, x := range config.Tensors(program) {
		tensors = append(tensors, gguf.Tensor{Name: x.Name, Type: quant.F32, Shape: x.Shape})
		byName[x.Name] = &x
	}
	filler := synth.Filler{Seed: 1}
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, gguf.Write(file, md, tensors, func(x *gguf.Tensor, w io.Writer) error {
		return filler.Write(w, byName[x.Name], x.Type)
	}))
}

// lastStep is a device that tells when it is done with a step that fills a sequence's window. It takes so long for that
// step that everything computed before it has reached the streams.
type lastStep struct {
	nullDevice
	pos  int // at which a row is the last one
	done *atomic.Bool
	any  *atomic.Int64 // steps, of whatever
}

func (d lastStep) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.nullDevice.Compile(p, c)
	return lastStepModel{m, d, len(p.Segments) - 1}, err
}

type lastStepModel struct {
	backend.Model
	d    lastStep
	head int
}

func (m lastStepModel) Run(w backend.Work, s *backend.Step) error {
	err := m.Model.Run(w, s)
	if w.Segment == m.head {
		m.d.any.Add(1)
		if slices.ContainsFunc(s.Spans, func(x backend.Span) bool { return x.Pos == m.d.pos }) {
			time.Sleep(time.Millisecond)
			m.d.done.Store(true)
		}
	}
	return err
}

// A client that reads all it has just as the scheduler falls asleep, because nobody reads, is not forgotten: it wakes
// the scheduler, or the scheduler sees what it read. Else it waits for ever.
//
// That moment is short. Many clients that never read make it longer, some 15 µs; and there are many tries, each at
// another time after the last step of the one request that kept the scheduler awake: it comes some 200 to 400 µs later.
// A lost wake-up is found by about every second run.
func TestWakeUpIsNotLost(t *testing.T) {
	const idle, tries = maxSessions - 16, 700
	d := lastStep{pos: batch.Window, done: new(atomic.Bool), any: new(atomic.Int64)}
	e := startNull(t, func(c *Config) { c.Device, c.Sequences = d, idle+2 })
	for i := range idle {
		defer begin(t, e, plain([]int32{int32(i)}, 1<<10)).Close()
	}
	reader := begin(t, e, plain([]int32{1}, 1<<18))
	defer reader.Close()
	var ev Event
	began := time.Now()
	for try := 0; try < tries && time.Since(began) < 6*time.Second; try++ { // some tries are enough on a slow machine
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		for before := int64(-1); before != d.any.Load(); time.Sleep(time.Millisecond) {
			before = d.any.Load() // until everybody's window is full
		}
		d.done.Store(false)
		other := begin(t, e, plain([]int32{2}, 1<<10))
		require.NoError(t, other.Next(ctx, &ev))
		next(t, reader, batch.Window/2) // these come again while the other one is computed
		for !d.done.Load() {
			runtime.Gosched()
		}
		wait := time.Duration(100+try*7%350) * time.Microsecond
		for at := time.Now(); time.Since(at) < wait; {
		}
		for range batch.Window { // as fast as it goes
			_ = reader.Next(ctx, &ev)
		}
		err := reader.Next(ctx, &ev)
		other.Close()
		cancel()
		require.NoError(t, err, "try %d: nobody computes", try)
	}
}
