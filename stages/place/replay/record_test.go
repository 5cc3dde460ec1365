package replay

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/place/expertcache"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

var update = flag.Bool("update", false, "record the golden traces again")

const (
	recorded = 4000 // tokens of each text
	context  = 1024 // of each sequence
	chunk    = 128  // rows at once; a row's choice does not depend on the others (law RowAlone)
)

// trace reads a golden trace: the choices of the trained mixture of ../shared/models on a held-out text, a row a step.
func trace(t *testing.T, text string) *Trace {
	t.Helper()
	path := filepath.Join("testdata", text+".trace.gz")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, record(t, text), 0o600))
	}
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	require.NoError(t, err)
	r, err := tokentrace.NewReader(unzipped)
	require.NoError(t, err)
	loaded, err := Load(r)
	require.NoError(t, err)
	require.Len(t, loaded.Steps, recorded)
	return loaded
}

// record runs the model on the text.
func record(t *testing.T, text string) []byte {
	dir := testref.Dir(t)
	file, err := gguf.Open(filepath.Join(dir, "models", "moe-Q4_K_M.gguf"))
	require.NoError(t, err)
	defer file.Close()
	bound := bind(t, file)
	vocab, err := token.New(&file.Meta)
	require.NoError(t, err)
	held, err := os.ReadFile(filepath.Join(dir, "models", "heldout-"+text+".txt"))
	require.NoError(t, err)
	ids, err := vocab.Encode(nil, string(held[:8*recorded]), token.Options{})
	require.NoError(t, err)
	ids = ids[:recorded]

	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	require.NoError(t, err)
	sizes := place.SizesOf(bound)
	model := tokentrace.Model{Name: file.Name, Vocab: bound.Vocab, Vectors: sizes.Vectors, Dense: sizes.Dense}
	for _, l := range sizes.Layers {
		model.Layers = append(model.Layers, tokentrace.Layer(l))
	}
	model.Name = "moe-Q4_K_M on heldout-" + text
	w, err := tokentrace.NewWriter(zipped, &model)
	require.NoError(t, err)
	for at, row := range rowsOf(t, file, bound, ids) {
		s := tokentrace.Step{Time: uint64(at), Tokens: ids[at : at+1],
			Spans: []tokentrace.Span{{Sequence: uint64(at / context), Position: at % context, Rows: 1}}}
		require.NoError(t, w.Write(&s))
		for _, e := range row {
			require.NoError(t, w.Write(e))
		}
	}
	require.NoError(t, zipped.Close())
	return out.Bytes()
}

func bind(t *testing.T, file *gguf.File) *ir.Bound {
	has := func(name string) bool { _, ok := file.Tensor(name); return ok }
	program, err := arch.Record(&file.Meta, has, arch.Options{})
	require.NoError(t, err)
	var tensors []ir.Tensor
	for _, t := range file.Tensors {
		tensors = append(tensors, ir.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape})
	}
	bound, err := ir.Bind(program, tensors)
	require.NoError(t, err)
	return bound
}

// rowsOf are the events of each token's row: what was foreseen, and what it chose.
func rowsOf(t *testing.T, file *gguf.File, bound *ir.Bound, ids []token.ID) (all [][]tokentrace.Event) {
	device, err := cpu.New(2, "")
	require.NoError(t, err)
	defer device.Close()
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF16, Blocks: []int{context / backend.BlockSize},
		MaxRows: chunk, MaxWanted: 1}}
	var weights backend.InPlace
	for _, i := range bound.Tensors {
		weights = append(weights, file.Bytes(&file.Tensors[i]))
	}
	c.Weights = weights
	model, err := device.Compile(bound, c)
	require.NoError(t, err)
	defer model.Close()
	blocks := make([]int32, c.Blocks[0])
	for i := range blocks {
		blocks[i] = int32(i)
	}
	for at := 0; at < len(ids); at += chunk {
		rows := min(chunk, len(ids)-at)
		s := model.Steps()[0]
		s.Tokens = append(s.Tokens[:0], ids[at:at+rows]...)
		s.Spans = []backend.Span{{Rows: rows, Pos: at % context, Tables: []backend.Table{{Blocks: blocks}}}}
		all = append(all, enqueue(t, bound, model, s)...)
		model.Finish(s, func(err error) { require.NoError(t, err) })
	}
	return all
}

// enqueue runs a step.
func enqueue(t *testing.T, bound *ir.Bound, model backend.Model, s *backend.Step) [][]tokentrace.Event {
	events, layer := make([][]tokentrace.Event, len(s.Tokens)), 0
	for segment := range bound.Segments {
		kind := bound.Segments[segment].Kind
		w := backend.Work{Segment: segment, Whole: true}
		if kind == ir.SegRoute {
			w.Chosen = func(experts []int32) {
				used := len(experts) / len(events)
				for r := range events {
					chosen := slices.Clone(experts[r*used:][:used])
					events[r] = append(events[r], &tokentrace.Chosen{Layer: layer, Experts: chosen})
				}
				layer++
			}
		}
		w.Foreseen = func(margins []int8) {
			experts := len(margins) / len(events)
			for r := range events {
				e := &tokentrace.Foreseen{Layer: layer, Late: kind == ir.SegExperts,
					Margins: slices.Clone(margins[r*experts:][:experts])}
				events[r] = append(events[r], e)
			}
		}
		require.NoError(t, model.Run(w, s))
	}
	return events
}

// TestPolicies compares the policies on real text, a row a step. Ours misses less than all others that have
// not seen the future, though with half of the experts in memory more than 1.25 times Belády's optimum.
func TestPolicies(t *testing.T) {
	for _, text := range []string{"en", "go"} {
		loaded := trace(t, text)
		for _, slots := range []int{8, 16, 24} {
			misses := map[expertcache.Kind]int{}
			line := ""
			for _, k := range all {
				r, err := Run(loaded, Setting{Policy: k, Prefetch: None, Slots: slots, Disk: 2e9, Memory: 20e9})
				require.NoError(t, err)
				misses[k] = r.Misses
				line += fmt.Sprintf("  %v %d (%.2f)", k, r.Misses, float64(r.Misses)/float64(misses[expertcache.Belady]))
			}
			t.Logf("%s, %d of 32 slots: misses%s", text, slots, line)
			for _, k := range []expertcache.Kind{expertcache.LRU, expertcache.LFU, expertcache.SLRU} {
				require.Less(t, misses[expertcache.Ours], misses[k], "%s, %d slots: %v", text, slots, k)
			}
			if slots <= 16 {
				require.Less(t, float64(misses[expertcache.Ours]), 1.55*float64(misses[expertcache.Belady]))
			}
		}
	}
}

// TestHour: an hour of a machine that makes forty tokens a second is replayed in seconds, and each time alike.
func TestHour(t *testing.T) {
	if testing.Short() {
		t.Skip("it replays 144 000 steps several times")
	}
	hour := *trace(t, "en")
	hour.Steps = slices.Concat(hour.Steps, trace(t, "go").Steps)
	hour.Steps = slices.Repeat(hour.Steps, 18)
	for _, s := range []Setting{{Policy: expertcache.LRU, Prefetch: None}, {Policy: expertcache.Ours, Prefetch: Predicted},
		{Policy: expertcache.Belady, Prefetch: Oracle}} {
		s.Slots, s.Disk, s.Memory = 16, 20e6, 200e6
		began := time.Now()
		r, err := Run(&hour, s)
		require.NoError(t, err)
		t.Logf("%v, %v: %.0f s of virtual time, %d steps, in %v", s.Policy, s.Prefetch, r.Seconds, len(hour.Steps), time.Since(began))
		require.Greater(t, r.Seconds, 3500.0)
		again, err := Run(&hour, s)
		require.NoError(t, err)
		require.Equal(t, r, again)
	}
}

// TestPrefetch says how much of the waiting is hidden by what is foreseen, and how much by knowing the next layer's
// choice: on a drive that is a fifth as fast as memory, and on one that is a tenth.
func TestPrefetch(t *testing.T) {
	for _, text := range []string{"en", "go"} {
		loaded := trace(t, text)
		for speeds, want := range map[[2]float64]float64{{3e9, 15e9}: 0.79, {3e9, 30e9}: 0.68, {1e9, 30e9}: 0.3} {
			var waited [Oracle + 1]float64
			var bytes [Oracle + 1]int64
			for p := None; p <= Oracle; p++ {
				r, err := Run(loaded, Setting{Policy: expertcache.Ours, Prefetch: p, Slots: 16, Disk: speeds[0], Memory: speeds[1]})
				require.NoError(t, err)
				waited[p], bytes[p] = r.Waited, r.Bytes
			}
			hidden := (waited[None] - waited[Predicted]) / (waited[None] - waited[Oracle])
			t.Logf("%s, %v: waited %.4f s, with ours %.4f, with the oracle %.4f: %.1f %% of what can be hidden; read %d, %d, %d",
				text, speeds, waited[None], waited[Predicted], waited[Oracle], 100*hidden,
				bytes[None], bytes[Predicted], bytes[Oracle])
			require.Less(t, waited[Oracle], waited[None])
			require.Greater(t, hidden, want)
			require.Less(t, float64(bytes[Predicted]), 3*float64(bytes[None]))
		}
	}
}

// TestThreeTiers: of a layer's 32 experts 13 have slots on a device, 22 wait in memory, and 10 are on disk, which is a
// 29th as fast as the bus: the shares and speeds of a 30 B mixture with 8 GB of a card's memory, 12 of the program's.
// All of them could be there. A policy that knows what experts cost gets there, and reads an eighth of what the same
// policy reads that does not; it waits less than one that knows the future and no prices.
//
// To fill slots while tokens are drawn is worth nothing, since the drive is busy with what they wait for; before the
// first of them it is.
func TestThreeTiers(t *testing.T) {
	for _, text := range []string{"en", "go"} {
		loaded := *trace(t, text)
		bytes := loaded.Sizes.Layers[0].Bytes
		run := func(steps []Step, s Setting) *Result {
			x := loaded
			x.Steps, x.Rows = steps, len(steps)
			s.Prefetch, s.Slots, s.Kept, s.Disk, s.Bus, s.Memory = None, 13, 22, 1.5e9, 43e9, 2e12
			r, err := Run(&x, s)
			require.NoError(t, err)
			return r
		}
		ours := run(loaded.Steps, Setting{Policy: expertcache.Ours})
		for k, times := range map[expertcache.Kind]float64{expertcache.LRU: 3.5, expertcache.LFU: 3.5, expertcache.SLRU: 3.5,
			expertcache.Ours:   3.5,
			expertcache.Belady: 2} {
			r := run(loaded.Steps, Setting{Policy: k, blind: true})
			t.Logf("%s, %v without prices: %d misses, %d MB read, %d copied, waited %.3f s; ours %d, %d, %d, %.3f", text, k,
				r.Misses, r.Bytes>>20, r.Copied>>20, r.Waited, ours.Misses, ours.Bytes>>20, ours.Copied>>20, ours.Waited)
			require.Less(t, times*ours.Waited, r.Waited, "%s, %v", text, k)
			require.Less(t, 8*ours.Bytes, r.Bytes, "%s, %v", text, k)
		}
		for _, n := range []int{8, 32, 128} {
			cold := run(loaded.Steps[:n], Setting{Policy: expertcache.Ours})
			filled := run(loaded.Steps[:n], Setting{Policy: expertcache.Ours, Fill: true})
			before := run(loaded.Steps[:n], Setting{Policy: expertcache.Ours, Fill: true, Lead: 1})
			t.Logf("%s, the first %d tokens: waited %.4f s, with slots filled meanwhile %.4f, before %.4f; read %d, %d and %d experts",
				text, n, cold.Waited, filled.Waited, before.Waited, cold.Bytes/bytes, filled.Bytes/bytes, before.Bytes/bytes)
			require.InEpsilon(t, cold.Waited, filled.Waited, 0.2)
			require.Less(t, 1.5*before.Waited, cold.Waited)
		}
	}
}
