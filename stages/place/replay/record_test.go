package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/arch"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/place/shelf"
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
	for at, chosen := range choices(t, file, bound, ids) {
		s := tokentrace.Step{Time: uint64(at),
			Spans: []tokentrace.Span{{Sequence: uint64(at / context), Position: at % context, Rows: 1}}}
		require.NoError(t, w.Write(&s))
		for l, experts := range chosen {
			require.NoError(t, w.Write(&tokentrace.Chosen{Layer: l, Experts: experts}))
		}
	}
	require.NoError(t, errors.Join(w.Flush(), zipped.Close()))
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

// choices are what each token's row chose: by token, by layer.
func choices(t *testing.T, file *gguf.File, bound *ir.Bound, ids []token.ID) (all [][][]int32) {
	device, err := cpu.New(2, "")
	require.NoError(t, err)
	defer device.Close()
	c := backend.Config{KV: backend.KVF16, Blocks: []int{context / backend.BlockSize}, MaxRows: chunk, MaxWanted: 1}
	for _, i := range bound.Tensors {
		c.InPlace = append(c.InPlace, file.Bytes(&file.Tensors[i]))
	}
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
		chosen := make([][][]int32, rows)
		for segment := range bound.Segments {
			require.NoError(t, model.Enqueue(segment, s))
			if bound.Segments[segment].Kind != ir.SegRoute {
				continue
			}
			require.NoError(t, model.Chosen(segment, s, func(experts []int32) {
				used := len(experts) / rows
				for r := range chosen {
					chosen[r] = append(chosen[r], append([]int32{}, experts[r*used:(r+1)*used]...))
				}
			}))
		}
		model.Finish(s, func(err error) { require.NoError(t, err) })
		all = append(all, chosen...)
	}
	return all
}

// TestPolicies compares the policies on real text, a row a step. Ours misses less than all others that have
// not seen the future, though with half of the experts in memory more than 1.25 times Belády's optimum.
func TestPolicies(t *testing.T) {
	for _, text := range []string{"en", "go"} {
		loaded := trace(t, text)
		for _, slots := range []int{8, 16, 24} {
			misses := map[shelf.Kind]int{}
			line := ""
			for _, k := range []shelf.Kind{shelf.Belady, shelf.LRU, shelf.LFU, shelf.SLRU, shelf.Ours} {
				r, err := Run(loaded, Setting{Policy: k, Prefetch: None, Slots: slots, Disk: 2e9, Memory: 20e9})
				require.NoError(t, err)
				misses[k] = r.Misses
				line += fmt.Sprintf("  %v %d (%.2f)", k, r.Misses, float64(r.Misses)/float64(misses[shelf.Belady]))
			}
			t.Logf("%s, %d of 32 slots: misses%s", text, slots, line)
			for _, k := range []shelf.Kind{shelf.LRU, shelf.LFU, shelf.SLRU} {
				require.Less(t, misses[shelf.Ours], misses[k], "%s, %d slots: %v", text, slots, k)
			}
			if slots <= 16 {
				require.Less(t, float64(misses[shelf.Ours]), 1.55*float64(misses[shelf.Belady]))
			}
		}
	}
}

// TestPrefetch says how much of the waiting is hidden by knowing the next layer's choice, and by guessing it from what
// followed what: next to nothing, because experts that often follow others are there already. A guess may not harm.
func TestPrefetch(t *testing.T) {
	for _, text := range []string{"en", "go"} {
		loaded := trace(t, text)
		var waited [Oracle + 1]float64
		var bytes [Oracle + 1]int64
		for p := None; p <= Oracle; p++ {
			r, err := Run(loaded, Setting{Policy: shelf.Ours, Prefetch: p, Slots: 16, Disk: 2e9, Memory: 20e9})
			require.NoError(t, err)
			waited[p], bytes[p] = r.Waited, r.Bytes
		}
		t.Logf("%s: waited %.4f s, with ours %.4f, with the oracle %.4f: %.0f %% of what can be hidden; read %d, %d, %d", text,
			waited[None], waited[Predicted], waited[Oracle],
			100*(waited[None]-waited[Predicted])/(waited[None]-waited[Oracle]), bytes[None], bytes[Predicted], bytes[Oracle])
		require.Less(t, waited[Oracle], waited[None])
		require.Less(t, waited[Predicted], 1.01*waited[None])
		require.Less(t, float64(bytes[Predicted]), 1.02*float64(bytes[None]))
	}
}
