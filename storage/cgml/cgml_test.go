package cgml_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/storage/cgml"
)

func parse(data []byte) (*cgml.Package, error) {
	return cgml.Parse(bytes.NewReader(data), int64(len(data)))
}

// TestParse: tensors lie where the archive has their bytes, by the names of Mistral's folders, and params.json says
// what the document does.
func TestParse(t *testing.T) {
	c := converttest.NewCgml(nil)
	data := c.Bytes(t, zip.Store)
	p, err := parse(data)
	require.NoError(t, err)
	require.Len(t, p.Tensors, len(c.Values))
	for _, x := range p.Tensors {
		var want []byte
		for i, v := range c.Values {
			if v.Name == x.Name {
				want = c.Files[i]
			}
		}
		require.Equal(t, want, data[x.Offset:x.Offset+x.Size], x.Name)
		require.Equal(t, x.Type == element.U32, strings.Contains(x.Name, "attention.") || strings.Contains(x.Name, "feed_forward"))
	}
	var params map[string]any
	require.NoError(t, json.Unmarshal(p.Texts["params.json"], &params))
	require.Equal(t, []any{96.0, 64.0}, params["quantization"].(map[string]any)["shapes"].(map[string]any)["layers.1.feed_forward.w3.weight"])
	delete(params, "quantization")
	require.InDelta(t, 1e-5, params["norm_eps"], 1e-12)
	delete(params, "norm_eps")
	require.Equal(t, map[string]any{"dim": 64.0, "n_layers": 2.0, "head_dim": 16.0, "n_heads": 4.0, "n_kv_heads": 2.0,
		"rope_theta": 10000.0, "hidden_dim": 96.0}, params)
	require.NotContains(t, p.Texts, "tokenizer.model")
}

// TestBroken: whatever is wrong in a package is said, by its part.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(c *converttest.Cgml)
		want   string
	}{
		{"missing file", func(c *converttest.Cgml) { c.Files = c.Files[:len(c.Files)-1] },
			"tensor tok_embeddings.weight: its file, Tensors/20.bin, is missing"},
		{"short file", func(c *converttest.Cgml) { c.Files[2] = c.Files[2][:100] },
			"Tensors/02.bin has 100 bytes, and its shape takes 2560"},
		{"empty document", func(c *converttest.Cgml) { c.Model.Reset() }, "model.bin: has 0 elements outside of each other"},
		{"cut document", func(c *converttest.Cgml) { c.Model.Truncate(1000) }, "ends within a record"},
		{"other root", func(c *converttest.Cgml) {
			c.Model.Reset()
			c.Model.Element("layers", func() {})
		}, `begins with "layers", want Transformer`},
		{"two roots", func(c *converttest.Cgml) { c.Model.Element("x", func() {}) }, "has 2 elements outside of each other"},
		{"unknown word", func(c *converttest.Cgml) {
			c.Model.Reset()
			c.Model.Write([]byte{0x42, 100, 0x01})
		}, "word 100 is not in the dictionary"},
		{"session's word", func(c *converttest.Cgml) {
			c.Model.Reset()
			c.Model.Write([]byte{0x42, 5, 0x01})
		}, "word 5 is not in the dictionary"},
		{"unknown record", func(c *converttest.Cgml) {
			c.Model.Reset()
			c.Model.Write([]byte{0x03})
		}, "record of kind 0x03 is not known here"},
		{"long length", func(c *converttest.Cgml) {
			c.Model.Reset()
			c.Model.Write([]byte{0x40, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
		}, "a length has more than 31 bits"},
		{"deep document", func(c *converttest.Cgml) {
			c.Model.Reset()
			c.Model.Write(bytes.Repeat([]byte{0x42, 8}, 1000))
		}, "or one within 64 others"},
		{"many elements", func(c *converttest.Cgml) {
			c.Model.Reset()
			c.Model.Element("Transformer", func() { c.Model.Write(bytes.Repeat([]byte{0x42, 8, 0x01}, 1<<20)) })
		}, "has more than 1048576 elements"},
	} {
		t.Run(c.name, func(t *testing.T) {
			broken := converttest.NewCgml(nil)
			c.change(broken)
			_, err := parse(broken.Bytes(t, zip.Store))
			require.ErrorContains(t, err, c.want)
		})
	}
	for name, c := range map[string]struct {
		write func(d *converttest.Document)
		want  string
	}{
		"version": {func(d *converttest.Document) { d.Value("modelVersion", 1) }, "modelVersion is 1, whose queries and keys lie"},
		"theta":   {func(d *converttest.Document) { d.Value("ropeTheta", float64(-5)) }, `ropeTheta is "-5", want a number above 0`},
	} {
		_, err := parse(converttest.NewCgml(c.write).Bytes(t, zip.Store))
		require.ErrorContains(t, err, c.want, name)
	}
	_, err := parse(converttest.NewCgml(nil).Bytes(t, zip.Deflate))
	require.ErrorContains(t, err, "is compressed, and cannot be used where it lies")
	_, err = parse([]byte("GGUF"))
	require.ErrorContains(t, err, "is no archive (ZIP), as packages are")
}

// TestCut: a document or an archive that ends anywhere too soon is an error of a few words.
func TestCut(t *testing.T) {
	whole, count := converttest.NewCgml(nil), 0
	for n := 0; n < whole.Model.Len(); n += max(1, whole.Model.Len()/90) {
		broken := converttest.NewCgml(nil)
		broken.Model.Truncate(n)
		_, err := parse(broken.Bytes(t, zip.Store))
		require.ErrorContains(t, err, "model.bin: ", "after %d bytes", n)
		require.Less(t, len(err.Error()), 400)
		count++
	}
	data := whole.Bytes(t, zip.Store)
	for n := 0; n < len(data); n += max(1, len(data)/60) {
		_, err := parse(data[:n])
		require.Error(t, err, "after %d bytes", n)
		count++
	}
	require.GreaterOrEqual(t, count, 150) // internal/packed has as many more
}

// TestSettings: numbers of parameters that do not belong together are refused; theta may be said.
func TestSettings(t *testing.T) {
	for from, c := range map[string]struct{ to, want string }{
		"\x88\x10": {"\x88\x20", "attnScoresMul is 0.25, want"},                 // features of a head
		"\x88\x02": {"\x88\x03", "countHeads is 4, and 3 heads of keys repeat"}, // heads of keys, the first 2 of the document
	} {
		x := converttest.NewCgml(nil)
		at := bytes.LastIndex(x.Model.Bytes(), []byte("\x42\x56")) // attnCacheSize
		model := bytes.Clone(x.Model.Bytes())
		copy(model[at:], bytes.Replace(model[at:], []byte(from), []byte(c.to), 1))
		x.Model.Reset()
		x.Model.Write(model)
		_, err := parse(x.Bytes(t, zip.Store))
		require.ErrorContains(t, err, c.want)
	}
	p, err := parse(converttest.NewCgml(func(d *converttest.Document) {
		d.Value("modelVersion", 0)
		d.Value("ropeTheta", 1e6)
	}).Bytes(t, zip.Store))
	require.NoError(t, err)
	require.Contains(t, string(p.Texts["params.json"]), `"rope_theta":1000000`)
}

// FuzzParse: no document makes the reader panic, or take memory that the file does not justify, and what is accepted
// lies within the file.
func FuzzParse(f *testing.F) {
	f.Add(converttest.NewCgml(nil).Model.Bytes())
	f.Fuzz(func(t *testing.T, model []byte) {
		c := converttest.NewCgml(nil)
		c.Model.Reset()
		c.Model.Write(model)
		data := c.Bytes(t, zip.Store)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := parse(data)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20+200*len(model)))
		if err != nil {
			require.Less(t, len(err.Error()), 1000)
			return
		}
		for _, x := range p.Tensors {
			require.LessOrEqual(t, x.Offset+x.Size, int64(len(data)))
		}
	})
}
