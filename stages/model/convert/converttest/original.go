package converttest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
)

// originalParams are those of a model of Llama's kind, as its maker saves them.
const originalParams = `{"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "multiple_of": 32, "norm_eps": 1e-05,
	"vocab_size": -1, "rope_theta": 10000.0}`

// originalShapes are the model's tensors.
func originalShapes() map[string][]int {
	shapes := map[string][]int{"tok_embeddings.weight": {40, 64}, "norm.weight": {64}, "output.weight": {40, 64}}
	for _, layer := range []string{"layers.0.", "layers.1."} {
		for name, shape := range map[string][]int{"attention_norm": {64}, "ffn_norm": {64}, "attention.wq": {64, 64},
			"attention.wk": {32, 64}, "attention.wv": {32, 64}, "attention.wo": {64, 64}, "feed_forward.w1": {96, 64},
			"feed_forward.w2": {64, 96}, "feed_forward.w3": {96, 64}} {
			shapes[layer+name+".weight"] = shape
		}
	}
	return shapes
}

// originalValue is a number that BF16 holds, of each place of each tensor.
func originalValue(name string, row, column int) float32 {
	return float32((len(name)*31+row*7+column*3)%255-127) / 64
}

// OriginalFolders writes a model as transformers has it; in one safetensors file, as Mistral publishes; in one file of
// PyTorch; and in two, each with a part of every matrix, as Meta publishes, embeddings divided by rows or by columns.
func OriginalFolders(t testing.TB) (plain string, originals map[string]string) {
	t.Helper()
	var own, theirs []Piece
	parts := map[string][2][]Piece{}
	for name, shape := range originalShapes() {
		x := originalPiece(name, name, shape, 0, 0)
		own = append(own, x)
		theirs = append(theirs, transformers(x))
		for key, columns := range map[string]bool{"rows": false, "columns": true} {
			both := parts[key]
			for i := range both {
				both[i] = append(both[i], originalPart(name, shape, i, columns))
			}
			parts[key] = both
		}
	}
	plain = WriteFolder(t, `{"architectures": ["LlamaForCausalLM"], "rms_norm_eps": 1e-5, "vocab_size": 40, "num_hidden_layers": 2,
		"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "rope_theta": 10000.0,
		"max_position_embeddings": 4096}`, theirs)
	write := func(files map[string][]byte) string {
		dir := filepath.Join(t.TempDir(), "model")
		require.NoError(t, os.Mkdir(dir, 0o755))
		files["params.json"] = []byte(originalParams)
		for name, data := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
		return dir
	}
	return plain, map[string]string{
		"safetensors": write(map[string][]byte{"consolidated.safetensors": Safetensors(t, own)}),
		"PyTorch":     write(map[string][]byte{"consolidated.00.pth": torchFile(t, own)}),
		"rows": write(map[string][]byte{"consolidated.00.pth": torchFile(t, parts["rows"][0]),
			"consolidated.01.pth": torchFile(t, parts["rows"][1])}),
		"columns": write(map[string][]byte{"consolidated.00.pth": torchFile(t, parts["columns"][0]),
			"consolidated.01.pth": torchFile(t, parts["columns"][1])}),
	}
}

// originalPiece is a tensor, or the part of one from a row and a column on.
func originalPiece(name, whole string, shape []int, row, column int) Piece {
	width := 1
	if len(shape) > 1 {
		width = shape[1]
	}
	p := piece(name, element.F32, shape[0], width, func(r, c int) float32 { return originalValue(whole, row+r, column+c) })
	p.Shape = shape
	return p
}

// originalPart is the part of a tensor that one of two files has.
func originalPart(name string, shape []int, part int, columns bool) Piece {
	divided := strings.HasSuffix(name, "wo.weight") || strings.HasSuffix(name, "w2.weight") ||
		columns && name == "tok_embeddings.weight"
	switch {
	case len(shape) == 1:
		return originalPiece(name, name, shape, 0, 0)
	case divided:
		return originalPiece(name, name, []int{shape[0], shape[1] / 2}, 0, part*shape[1]/2)
	}
	return originalPiece(name, name, []int{shape[0] / 2, shape[1]}, part*shape[0]/2, 0)
}

// transformers is a tensor by the name that transformers has for it. Of queries and keys it has the even rows of each
// head before the odd ones.
func transformers(p Piece) Piece {
	whole := p.Name
	for _, to := range [][2]string{{"tok_embeddings", "model.embed_tokens"}, {"output", "lm_head"}, {"layers.", "model.layers."},
		{"attention.wq", "self_attn.q_proj"}, {"attention.wk", "self_attn.k_proj"}, {"attention.wv", "self_attn.v_proj"},
		{"attention.wo", "self_attn.o_proj"}, {"feed_forward.w1", "mlp.gate_proj"}, {"feed_forward.w2", "mlp.down_proj"},
		{"feed_forward.w3", "mlp.up_proj"}, {"attention_norm", "input_layernorm"}, {"ffn_norm", "post_attention_layernorm"}} {
		p.Name = strings.Replace(p.Name, to[0], to[1], 1)
	}
	if p.Name == "norm.weight" {
		p.Name = "model.norm.weight"
	}
	if strings.Contains(p.Name, "q_proj") || strings.Contains(p.Name, "k_proj") {
		const head = packedWidth / 4
		turned := piece(p.Name, element.F32, p.Shape[0], p.Shape[1], func(r, c int) float32 {
			in := r % head
			return originalValue(whole, r-in+in%(head/2)*2+in/(head/2), c)
		})
		return turned
	}
	return p
}

// torchFile is a file of PyTorch with tensors of F32.
func torchFile(t testing.TB, pieces []Piece) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	add := func(name string, data []byte) {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: "consolidated/" + name, Method: zip.Store})
		require.NoError(t, err)
		_, err = w.Write(data)
		require.NoError(t, err)
	}
	pickle := bytes.NewBufferString("\x80\x02}(")
	text := func(s string) { fmt.Fprintf(pickle, "X%s%s", binary.LittleEndian.AppendUint32(nil, uint32(len(s))), s) }
	number := func(n int) { fmt.Fprintf(pickle, "J%s", binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	for i, p := range pieces {
		text(p.Name)
		pickle.WriteString("ctorch._utils\n_rebuild_tensor_v2\n((")
		text("storage")
		pickle.WriteString("ctorch\nFloatStorage\n")
		text(fmt.Sprint(i))
		text("cpu")
		number(len(p.Data) / 4)
		pickle.WriteString("tQ")
		number(0)
		pickle.WriteByte('(')
		for _, d := range p.Shape {
			number(d)
		}
		pickle.WriteString("t(")
		if len(p.Shape) > 1 {
			number(p.Shape[1])
		}
		number(1)
		pickle.WriteString("t\x89ccollections\nOrderedDict\n)RtR")
	}
	pickle.WriteString("u.")
	add("data.pkl", pickle.Bytes())
	for i, p := range pieces {
		add(fmt.Sprint("data/", i), p.Data)
	}
	require.NoError(t, archive.Close())
	return out.Bytes()
}
