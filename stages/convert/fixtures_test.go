package convert

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// sampled are four values of a tensor as transformers saved it, in BF16: those of elements 13, 13 + 7919, … modulo its
// size. They were worked out from the seeds in the fixtures' make.py with PyTorch's generator, and so know nothing of
// the orders that are tested here. Its cosine may round otherwise than ours: the last bit does not count.
type sampled map[string][]uint16

// folders reads testdata/folders.txt: for each fixture the tensors that transformers saves, with shapes and samples.
func folders(t testing.TB) (map[string][]element.Tensor, map[string]sampled) {
	t.Helper()
	f, err := os.Open("testdata/folders.txt")
	require.NoError(t, err)
	defer f.Close()
	all, samples, name := map[string][]element.Tensor{}, map[string]sampled{}, ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if words[0] == "#" {
			name = words[1]
			samples[name] = sampled{}
			continue
		}
		one := element.Tensor{Name: words[0], Type: element.F32}
		for i, w := range words[1:] {
			if w == "=" {
				samples[name][one.Name] = hexadecimal(t, words[i+2:])
				break
			}
			n, err := strconv.Atoi(w)
			require.NoError(t, err)
			one.Shape = append(one.Shape, n)
		}
		if strings.HasSuffix(one.Name, "_blocks") || strings.HasSuffix(one.Name, "_scales") {
			one.Type = element.U8
		}
		all[name] = append(all[name], one)
	}
	return all, samples
}

func hexadecimal(t testing.TB, words []string) (out []uint16) {
	for _, w := range words {
		n, err := strconv.ParseUint(w, 16, 16)
		require.NoError(t, err)
		out = append(out, uint16(n))
	}
	return out
}

// fixture is a folder made of a fixture's GGUF file: the same tensors, as transformers saves them.
type fixture struct {
	file   *gguf.File
	folder *Folder
	data   map[string][]byte // of the folder's tensors
}

// openFixture writes the weights of a fixture back as the folder that it was converted from. Which element of the
// folder each value of the file was is what the plan says; that the folder is right is for its samples to say.
func openFixture(t *testing.T, name string, tensors []element.Tensor) *fixture {
	t.Helper()
	path := filepath.Join(testref.Dir(t), "fixtures", name+".gguf")
	file, err := gguf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	x := &fixture{file: file, data: map[string][]byte{}, folder: &Folder{
		Name: "fixture", Tensors: tensors, Texts: map[string][]byte{"config.json": configOf(t, name)},
	}}
	if kind, ok := map[string]string{"bert": "mean_tokens", "nomicbert": "mean_tokens", "qwen3emb": "lasttoken"}[name]; ok {
		x.folder.Texts["1_Pooling/config.json"] = fmt.Appendf(nil, `{"pooling_mode_%s": true}`, kind)
	}
	x.vocabulary(t)
	plan, err := Plan(x.folder, x.options())
	require.NoError(t, err)
	for i := range plan.Tensors {
		x.writeBack(t, &plan.Tensors[i])
	}
	return x
}

// configOf is the configuration that a fixture's model was built from.
func configOf(t testing.TB, name string) []byte {
	text, err := os.ReadFile(filepath.Join(testref.Dir(t), "fixtures", name+".json"))
	require.NoError(t, err)
	var said struct {
		Config json.RawMessage `json:"hf_config"`
	}
	require.NoError(t, json.Unmarshal(text, &said))
	return said.Config
}

func (x *fixture) options() Options {
	pre, _ := x.file.Meta.String("tokenizer.ggml.pre")
	size, _ := x.file.Meta.Int("general.file_type")
	return Options{Pre: pre, FileType: uint32(size)}
}

// vocabulary writes the fixture's tokens as the files of a tokenizer.
func (x *fixture) vocabulary(t *testing.T) {
	model, err := x.file.Meta.String("tokenizer.ggml.model")
	require.NoError(t, err)
	texts, _ := x.file.Meta.Strings("tokenizer.ggml.tokens")
	types, _ := x.file.Meta.Ints("tokenizer.ggml.token_type")
	merges, _ := x.file.Meta.Strings("tokenizer.ggml.merges")
	kind := map[string]string{"gpt2": "BPE", "llama": "BPE", "bert": "WordPiece"}[model]
	vocab := map[string]int{}
	var added []map[string]any
	for i, text := range texts {
		if int32(types[i]) == control {
			added = append(added, map[string]any{"id": i, "content": text, "special": true})
		} else if rest, begins := strings.CutPrefix(text, "▁"); model == "bert" {
			if text = "##" + text; begins {
				text = rest
			}
		}
		vocab[text] = i
	}
	one := map[string]any{"added_tokens": added, "model": map[string]any{
		"type": kind, "vocab": vocab, "merges": merges, "byte_fallback": model == "llama"}}
	if model == "bert" {
		x.folder.Texts["tokenizer_config.json"] = []byte(`{"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
			"pad_token": "[PAD]", "mask_token": {"content": "[MASK]"}}`)
	}
	if model == "llama" {
		scores, _ := x.file.Meta.Floats("tokenizer.ggml.scores")
		x.folder.Texts["tokenizer.model"] = pieces(texts, scores, types)
		x.folder.Texts["tokenizer_config.json"] = []byte(`{"add_bos_token": true}`)
	}
	x.folder.Texts["tokenizer.json"], err = json.Marshal(one)
	require.NoError(t, err)
}

// pieces writes a tokenizer.model.
func pieces(texts []string, scores []float32, types []int64) []byte {
	var all []byte
	for i, text := range texts {
		one := binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(text)))
		one = append(append(one, text...), 2<<3|5)
		one = binary.LittleEndian.AppendUint32(one, math.Float32bits(scores[i]))
		one = append(one, 3<<3, byte(types[i]))
		all = append(binary.AppendUvarint(append(all, 1<<3|2), uint64(len(one))), one...)
	}
	return all
}

// writeBack puts the values of a tensor of the file where the plan would take them from.
func (x *fixture) writeBack(t *testing.T, p *Tensor) {
	from, ok := x.file.Tensor(p.Name)
	require.True(t, ok, p.Name)
	require.NoError(t, x.file.View(from, func(data []byte) error {
		if p.Scales != nil {
			x.unpack(p, data)
			return nil
		}
		values := make([]float32, len(data)/from.Type.Bytes())
		if err := quant.Dequantize(from.Type, values, data); err != nil || p.Values != nil {
			return err
		}
		for _, v := range p.Views {
			into := x.bytes(v.Source)
			_, run := v.runs()
			if err := v.walk(func(at int64) error {
				for i := range run {
					w := values[0]
					switch p.Change {
					case Plus1:
						w = quant.BF16ToF32(quant.F32ToBF16(w - 1))
					case NegExp:
						w = quant.BF16ToF32(quant.F32ToBF16(float32(math.Log(float64(-w)))))
					}
					binary.LittleEndian.PutUint32(into[4*(at+i):], math.Float32bits(w))
					values = values[1:]
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// bytes are those of a tensor of the folder.
func (x *fixture) bytes(s element.Tensor) []byte {
	if x.data[s.Name] == nil {
		n, _ := s.Count()
		x.data[s.Name] = make([]byte, n*int64(s.Type.Size()))
	}
	return x.data[s.Name]
}

// unpack takes blocks of MXFP4 apart.
func (x *fixture) unpack(p *Tensor, data []byte) {
	var codes, scales []byte
	for ; len(data) > 0; data = data[17:] {
		scales = append(scales, data[0])
		code := func(i int) byte { return data[1+i%16] >> (4 * (i / 16)) & 15 }
		for i := range 16 {
			codes = append(codes, code(2*i)|code(2*i+1)<<4)
		}
	}
	for _, put := range []struct {
		v    View
		data []byte
	}{{p.Views[0], codes}, {p.Scales[0], scales}} {
		into := x.bytes(put.v.Source)
		_, run := put.v.runs()
		_ = put.v.walk(func(at int64) error {
			put.data = put.data[copy(into[at:at+run], put.data[:run]):]
			return nil
		})
	}
}

// A folder with a fixture's weights becomes the fixture: every tensor byte for byte, every key with its type and value.
func TestFixtures(t *testing.T) {
	all, samples := folders(t)
	require.Len(t, all, 37)
	for name, tensors := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := openFixture(t, name, tensors)
			x.isTransformers(t, samples[name])
			plan, err := Plan(x.folder, x.options())
			require.NoError(t, err)
			require.Len(t, plan.Tensors, len(x.file.Tensors))
			for i := range plan.Tensors {
				x.sameTensor(t, &plan.Tensors[i])
			}
			x.sameKeys(t, plan)
			for _, one := range tensors {
				require.Contains(t, x.data, one.Name, "is not used")
			}
		})
	}
}

// isTransformers compares the folder with what transformers had, and with what it can have: weights in BF16.
func (x *fixture) isTransformers(t *testing.T, samples sampled) {
	for _, one := range x.folder.Tensors {
		if one.Type != element.F32 {
			continue
		}
		data := x.data[one.Name]
		for i := 0; i < len(data); i += 4 {
			if data[i] != 0 || data[i+1] != 0 {
				require.Fail(t, "is none of BF16", "%s: element %d", one.Name, i/4)
			}
		}
		for i, want := range samples[one.Name] {
			got := binary.LittleEndian.Uint16(data[4*((i*7919+13)%(len(data)/4))+2:])
			require.InDelta(t, want, got, 1, "%s: sample %d", one.Name, i)
		}
	}
}

func (x *fixture) sameTensor(t *testing.T, p *Tensor) {
	want, ok := x.file.Tensor(p.Name)
	require.True(t, ok, p.Name)
	require.Equal(t, want.Shape, p.Shape, p.Name)
	to := quant.BF16
	switch {
	case p.Vector:
		to = quant.F32
	case p.Scales != nil:
		to = quant.MXFP4
	}
	require.Equal(t, want.Type, to, p.Name)
	var got bytes.Buffer
	require.NoError(t, p.Write(&got, to, func(name string, use func([]byte) error) error { return use(x.data[name]) }))
	require.NoError(t, x.file.View(want, func(data []byte) error {
		if p.Change == NegExp {
			return near(data, got.Bytes())
		}
		if !bytes.Equal(data, got.Bytes()) {
			return fmt.Errorf("%s has other bytes", p.Name)
		}
		return nil
	}))
}

// near compares float32 values to the last bit but one: another exp rounds otherwise.
func near(want, got []byte) error {
	for i := 0; i < len(want); i += 4 {
		w, g := binary.LittleEndian.Uint32(want[i:]), binary.LittleEndian.Uint32(got[i:])
		if w-g+1 > 2 {
			return fmt.Errorf("value %d is %v, want %v", i/4, math.Float32frombits(g), math.Float32frombits(w))
		}
	}
	return nil
}

// sameKeys compares all keys but the name, which was given to the converter by hand.
func (x *fixture) sameKeys(t *testing.T, plan *Model) {
	skip := []string{"general.name", "general.basename", "general.finetune", "general.version"}
	for _, key := range plan.Meta.Keys() {
		require.True(t, x.file.Meta.Has(key) || slices.Contains(skip, key), "%s is too much", key)
	}
	for _, key := range x.file.Meta.Keys() {
		want, _ := x.file.Meta.Get(key)
		got, ok := plan.Meta.Get(key)
		if slices.Contains(skip, key) {
			continue
		}
		require.True(t, ok, "%s is missing", key)
		require.Equal(t, want, got, key)
	}
}
