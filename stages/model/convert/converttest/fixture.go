// Package converttest makes the folders of the reference data's models: the weights of each file, written back as
// transformers saves them.
//
// Only tests import it.
package converttest

import (
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// control is the type of tokens that are no text, as GGUF files number them.
const control = 3

// Sampled are four values of a tensor as transformers saved it, in BF16: those of elements 13, 13 + 7919, … modulo its
// size. They were worked out from the seeds in the fixtures' make.py with PyTorch's generator, and so know nothing of
// the orders that are tested here. Its cosine may round otherwise than ours: the last bit does not count.
type Sampled map[string][]uint16

//go:embed folders.txt
var listed string

// Folders lists for each fixture the tensors that transformers saves, with shapes and samples.
func Folders(t testing.TB) (map[string][]element.Tensor, map[string]Sampled) {
	t.Helper()
	all, samples, name := map[string][]element.Tensor{}, map[string]Sampled{}, ""
	for line := range strings.Lines(listed) {
		words := strings.Fields(line)
		if words[0] == "#" {
			name = words[1]
			samples[name] = Sampled{}
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

// Fixture is a folder made of a fixture's GGUF file: the same tensors, as transformers saves them.
type Fixture struct {
	File   *gguf.File
	Folder *convert.Folder
	Data   map[string][]byte // of the folder's tensors
}

// Open writes the weights of a fixture back as the folder that it was converted from. Which element of the
// folder each value of the file was is what the plan says; that the folder is right is for its samples to say.
func Open(t *testing.T, name string, tensors []element.Tensor) *Fixture {
	t.Helper()
	path := filepath.Join(testref.Dir(t), "fixtures", name+".gguf")
	file, err := gguf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	x := &Fixture{File: file, Data: map[string][]byte{}, Folder: &convert.Folder{
		Name: "fixture", Tensors: tensors, Texts: map[string][]byte{"config.json": Config(t, name)},
	}}
	if kind, ok := map[string]string{"bert": "mean_tokens", "nomicbert": "mean_tokens", "qwen3emb": "lasttoken"}[name]; ok {
		x.Folder.Texts["1_Pooling/config.json"] = fmt.Appendf(nil, `{"pooling_mode_%s": true}`, kind)
	}
	x.vocabulary(t)
	plan, err := convert.Plan(x.Folder, x.Options())
	require.NoError(t, err)
	for i := range plan.Tensors {
		x.writeBack(t, &plan.Tensors[i])
	}
	return x
}

// Config is the configuration that a fixture's model was built from.
func Config(t testing.TB, name string) []byte {
	text, err := os.ReadFile(filepath.Join(testref.Dir(t), "fixtures", name+".json"))
	require.NoError(t, err)
	var said struct {
		Config json.RawMessage `json:"hf_config"`
	}
	require.NoError(t, json.Unmarshal(text, &said))
	return said.Config
}

// Options are the options that the fixture's file was made with.
func (x *Fixture) Options() convert.Options {
	pre, _ := x.File.Meta.String("tokenizer.ggml.pre")
	size, _ := x.File.Meta.Int("general.file_type")
	return convert.Options{Pre: pre, FileType: uint32(size)}
}

// vocabulary writes the fixture's tokens as the files of a tokenizer.
func (x *Fixture) vocabulary(t *testing.T) {
	model, err := x.File.Meta.String("tokenizer.ggml.model")
	require.NoError(t, err)
	texts, _ := x.File.Meta.Strings("tokenizer.ggml.tokens")
	types, _ := x.File.Meta.Ints("tokenizer.ggml.token_type")
	merges, _ := x.File.Meta.Strings("tokenizer.ggml.merges")
	kind := map[string]string{"gpt2": "BPE", "llama": "BPE", "bert": "WordPiece"}[model]
	vocab := map[string]int{}
	var added []map[string]any
	for i, text := range texts {
		if types[i] == control {
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
		x.Folder.Texts["tokenizer_config.json"] = []byte(`{"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
			"pad_token": "[PAD]", "mask_token": {"content": "[MASK]"}}`)
	}
	if model == "llama" {
		scores, _ := x.File.Meta.Floats("tokenizer.ggml.scores")
		x.Folder.Texts["tokenizer.model"] = pieces(texts, scores, types)
		x.Folder.Texts["tokenizer_config.json"] = []byte(`{"add_bos_token": true}`)
	}
	x.Folder.Texts["tokenizer.json"], err = json.Marshal(one)
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
func (x *Fixture) writeBack(t *testing.T, p *convert.Tensor) {
	from, ok := x.File.Tensor(p.Name)
	require.True(t, ok, p.Name)
	require.NoError(t, x.File.View(from, func(data []byte) error {
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
			_, run := v.Runs()
			if err := v.Walk(func(at int64) error {
				for i := range run {
					w := values[0]
					switch p.Change {
					case convert.Plus1:
						w = quant.BF16ToF32(quant.F32ToBF16(w - 1))
					case convert.NegExp:
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

// bytes returns the bytes of a tensor of the folder.
func (x *Fixture) bytes(s element.Tensor) []byte {
	if x.Data[s.Name] == nil {
		n, _ := s.Count()
		x.Data[s.Name] = make([]byte, n*int64(s.Type.Size()))
	}
	return x.Data[s.Name]
}

// unpack takes blocks of MXFP4 apart.
func (x *Fixture) unpack(p *convert.Tensor, data []byte) {
	var codes, scales []byte
	for ; len(data) > 0; data = data[17:] {
		scales = append(scales, data[0])
		code := func(i int) byte { return data[1+i%16] >> (4 * (i / 16)) & 15 }
		for i := range 16 {
			codes = append(codes, code(2*i)|code(2*i+1)<<4)
		}
	}
	for _, put := range []struct {
		v    convert.View
		data []byte
	}{{p.Views[0], codes}, {p.Scales[0], scales}} {
		into := x.bytes(put.v.Source)
		_, run := put.v.Runs()
		_ = put.v.Walk(func(at int64) error {
			put.data = put.data[copy(into[at:at+run], put.data[:run]):]
			return nil
		})
	}
}
