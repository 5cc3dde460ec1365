package converttest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/quant"
)

// cgmlWords are the words of the dictionary that documents here use, by their numbers.
var cgmlWords = map[string]byte{"x": 4, "y": 5, "z": 6, "w": 7, "id": 9, "shape": 10, "dataType": 11, "usage": 12,
	"layout": 13, "size": 14, "stride": 15, "ModelMetadata": 16, "formatVersion": 17, "modelType": 18, "Transformer": 20,
	"TransformerBlock": 21, "layers": 22, "tok_embeddings": 23, "norm": 24, "output": 25, "parameters": 26, "attention": 27,
	"feedForward": 28, "attention_norm": 29, "ffn_norm": 30, "wk": 31, "wo": 32, "wq": 33, "wv": 34, "w1": 35, "w2": 36,
	"w3": 37, "countHeads": 38, "repeats": 39, "minusHalfDimMul": 40, "attnScoresMul": 41, "normalEpsilon": 42,
	"attnCacheSize": 43}

// Document is binary XML (MC-NBFX), while it is written.
type Document struct{ bytes.Buffer }

// Element writes an element of what inside writes: by its word, or by name if it has none.
func (d *Document) Element(name string, inside func()) {
	if word, ok := cgmlWords[name]; ok {
		d.Write([]byte{0x42, 2 * word})
	} else {
		d.Write([]byte{0x40, byte(len(name))})
		d.WriteString(name)
	}
	inside()
	d.WriteByte(0x01)
}

// Value writes an element of a number or a text, in one of the ways that there are for it.
func (d *Document) Value(name string, value any) {
	d.Element(name, func() {
		switch v := value.(type) {
		case int:
			switch {
			case v == 0 || v == 1:
				d.WriteByte(0x80 + 2*byte(v))
			case v == int(int8(v)):
				d.Write([]byte{0x88, byte(v)})
			case v == int(int16(v)):
				d.Write([]byte{0x8a, byte(v), byte(v >> 8)})
			default:
				d.Write(binary.LittleEndian.AppendUint32([]byte{0x8c}, uint32(v)))
			}
		case float32:
			d.Write(binary.LittleEndian.AppendUint32([]byte{0x90}, math.Float32bits(v)))
		case float64:
			d.Write(binary.LittleEndian.AppendUint64([]byte{0x92}, math.Float64bits(v)))
		case string:
			d.Write([]byte{0x98, byte(len(v))})
			d.WriteString(v)
		}
	})
}

// Cgml is a package while it is written.
type Cgml struct {
	Model  Document
	Files  [][]byte // of tensors, by their numbers
	Values []Piece  // of the model, in F32, as a folder of Mistral's would have it
}

// tensor writes a tensor's place in the document, and its bytes.
func (c *Cgml) tensor(member, name string, shape []int) {
	rows, columns, layout, kind := 1, shape[len(shape)-1], 0, 1
	if len(shape) > 1 {
		rows = shape[0]
	}
	x := originalPiece(name, name, shape, 0, 0)
	data := x.Data
	if strings.Contains(name, ".attention.") || strings.Contains(name, ".feed_forward.") {
		layout, kind = 1, 2
		data, x.Data = panels(name, rows, columns)
	}
	d := &c.Model
	d.Element(member, func() {
		d.Write([]byte{0x04, 1, 'a', 0x98, 1, 'b'}) // an attribute
		d.Value("dataType", kind)
		d.Value("id", len(c.Files))
		d.Value("layout", layout)
		d.Element("shape", func() {
			d.Element("size", func() {
				for i, n := range []int{1, columns, rows, 1} { // as DataContract does, by name
					d.Value([]string{"w", "x", "y", "z"}[i], n)
				}
			})
		})
		d.Value("usage", 0)
	})
	c.Files, c.Values = append(c.Files, data), append(c.Values, x)
}

// panels compresses numbers to BCML1, word by word as its description says, and returns what it holds in F32.
func panels(name string, rows, columns int) (data, values []byte) {
	words := (columns + 31) / 32 * 5
	all := make([]uint32, (rows+63)/64*64*words)
	for r := range rows {
		for c := range columns {
			scale := quant.F32ToF16(float32(1+(len(name)+r+c/32)%9) / 64)
			offset := quant.F32ToF16(-float32((r+5*(c/32))%11) / 32)
			code := uint32(r*7+c*5+c/9) % 16
			if r%3 == 0 { // what an encoder of Q4_1 would write otherwise, and round
				code = 5 + code%4
			}
			at := func(word int) *uint32 { return &all[r/64*64*words+word*64+r%64] }
			*at(c / 32 * 5) = uint32(offset)<<16 | uint32(scale)
			*at(c/32*5 + 1 + c%32/8) |= code << (4 * (c % 8))
			v := float32(code)*quant.F16ToF32(scale) + quant.F16ToF32(offset)
			values = binary.LittleEndian.AppendUint32(values, math.Float32bits(v))
		}
	}
	for _, w := range all {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	return data, values
}

// NewCgml makes the package of a model of 2 layers, some of whose matrices have rows beyond their last whole panel.
// parameters are written behind the others.
func NewCgml(parameters func(d *Document)) *Cgml {
	c := new(Cgml)
	d := &c.Model
	d.Element("Transformer", func() {
		d.Element("layers", func() {
			for l := range 2 {
				d.Element("TransformerBlock", func() { c.layer(fmt.Sprintf("layers.%d.", l)) })
			}
		})
		c.tensor("norm", "norm.weight", []int{64})
		c.tensor("output", "output.weight", []int{40, 64})
		d.Element("parameters", func() {
			d.Element("attnCacheSize", func() {
				for i, n := range []int{1, 16, 2, 0} {
					d.Value([]string{"w", "x", "y", "z"}[i], n)
				}
			})
			d.Value("attnScoresMul", float32(0.25))
			d.Value("countHeads", 4)
			d.Value("normalEpsilon", float32(1e-5))
			d.Value("repeats", 2)
			if parameters != nil {
				parameters(d)
			}
		})
		c.tensor("tok_embeddings", "tok_embeddings.weight", []int{40, 64})
	})
	return c
}

func (c *Cgml) layer(at string) {
	d, shapes := &c.Model, originalShapes()
	part := func(member, module string, names ...string) {
		d.Element(member, func() {
			for _, name := range names {
				whole := at + module + "." + name + ".weight"
				c.tensor(name, whole, shapes[whole])
			}
		})
	}
	part("attention", "attention", "wk", "wo", "wq", "wv")
	c.tensor("attention_norm", at+"attention_norm.weight", shapes[at+"attention_norm.weight"])
	part("feedForward", "feed_forward", "w1", "w2", "w3")
	c.tensor("ffn_norm", at+"ffn_norm.weight", shapes[at+"ffn_norm.weight"])
}

// Bytes is the package. method is how tensors are packed.
func (c *Cgml) Bytes(t testing.TB, method uint16) []byte {
	t.Helper()
	var out bytes.Buffer
	var about Document
	about.Element("ModelMetadata", func() {
		about.Value("formatVersion", 1)
		about.Value("modelType", "Mistral.Model.Transformer")
	})
	archive := zip.NewWriter(&out)
	add := func(name string, method uint16, data []byte) {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		require.NoError(t, err)
		_, err = w.Write(data)
		require.NoError(t, err)
	}
	add("model.bin", zip.Deflate, c.Model.Bytes())
	add("metadata.bin", zip.Deflate, about.Bytes())
	for i, data := range c.Files {
		add(fmt.Sprintf("Tensors/%02d.bin", i), method, data)
	}
	require.NoError(t, archive.Close())
	return out.Bytes()
}

// CgmlFolders writes a package, and Mistral's folder of the numbers that it holds.
func CgmlFolders(t testing.TB) (pack, plain string) {
	t.Helper()
	c := NewCgml(nil)
	pack = filepath.Join(t.TempDir(), "model.cgml")
	require.NoError(t, os.WriteFile(pack, c.Bytes(t, zip.Store), 0o600))
	plain = filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.Mkdir(plain, 0o755))
	params := `{"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16, "norm_eps": 1e-05, "rope_theta": 10000}`
	require.NoError(t, os.WriteFile(filepath.Join(plain, "params.json"), []byte(params), 0o600))
	values := slices.Clone(c.Values)
	for i := range values {
		values[i].Type = element.F32
	}
	require.NoError(t, os.WriteFile(filepath.Join(plain, "consolidated.safetensors"), Safetensors(t, values), 0o600))
	return pack, plain
}
