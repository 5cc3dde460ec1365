package cgml

import (
	"fmt"
	"math"
	"strconv"

	"github.com/sluice-ai/sluice/internal/element"
)

// model is what a document says, while it is read.
type model struct {
	pack   *pack
	params map[string]any // of params.json
	shapes map[string][2]int
	found  []element.Stored
}

// modules are the matrices of a layer: where a document has them, and what Mistral's folders call them.
var modules = []struct{ part, member, name string }{
	{"attention", "wq", "attention.wq"}, {"attention", "wk", "attention.wk"}, {"attention", "wv", "attention.wv"},
	{"attention", "wo", "attention.wo"}, {"feedForward", "w1", "feed_forward.w1"},
	{"feedForward", "w2", "feed_forward.w2"},
	{"feedForward", "w3", "feed_forward.w3"}, {"", "attention_norm", "attention_norm"}, {"", "ffn_norm", "ffn_norm"},
}

// read reads a model's tensors, then its parameters.
func (m *model) read(root *node) error {
	if root.name != "Transformer" {
		return fmt.Errorf("begins with %.40q, want Transformer", root.name)
	}
	for _, name := range []string{"tok_embeddings", "norm", "output"} {
		if err := m.tensor(root.child(name), name); err != nil {
			return err
		}
	}
	layers := root.child("layers")
	if layers == nil || len(layers.children) == 0 {
		return fmt.Errorf("has no layers")
	}
	for l, block := range layers.children {
		for _, t := range modules {
			of := block
			if t.part != "" {
				of = block.child(t.part)
			}
			if err := m.tensor(of.child(t.member), fmt.Sprintf("layers.%d.%s", l, t.name)); err != nil {
				return err
			}
		}
	}
	return m.parameters(root.child("parameters"), len(layers.children))
}

// parameters writes params.json.
func (m *model) parameters(n *node, layers int) error {
	if n == nil {
		return fmt.Errorf("has no parameters")
	}
	r := &numbers{n: n}
	cache := &numbers{n: n.child("attnCacheSize"), at: "attnCacheSize"}
	heads, eps := r.integer("countHeads", 1), r.float("normalEpsilon", 0)
	head, kv, window := cache.integer("x", 1), cache.integer("y", 1), cache.integer("z", 0)
	repeats, scale, version := r.integer("repeats", 1), r.float("attnScoresMul", 0), 0
	if n.child("modelVersion") != nil {
		version = r.integer("modelVersion", 0)
	}
	theta := 10000.0
	if n.child("ropeTheta") != nil {
		theta = r.float("ropeTheta", 0)
	}
	if cache.err != nil {
		r.err = cache.err
	}
	embeddings := m.found[0].Shape
	switch {
	case r.err != nil:
		return fmt.Errorf("parameters: %w", r.err)
	case version != 0:
		return fmt.Errorf("parameters: modelVersion is %d, whose queries and keys lie in another order: want 0, or the model's "+
			"folder of safetensors", version)
	case heads != kv*repeats:
		return fmt.Errorf("parameters: countHeads is %d, and %d heads of keys repeat %d times: these do not belong together",
			heads, kv, repeats)
	case math.Abs(scale*math.Sqrt(float64(head))-1) > 1e-3:
		return fmt.Errorf("parameters: attnScoresMul is %v, want %v, 1/√%d", scale, 1/math.Sqrt(float64(head)), head)
	case len(embeddings) != 2:
		return fmt.Errorf("tok_embeddings has shape %v, want rows and columns that are not compressed", embeddings)
	}
	m.params = map[string]any{"dim": embeddings[1], "n_layers": layers, "head_dim": head, "n_heads": heads, "n_kv_heads": kv,
		"norm_eps": eps, "rope_theta": theta}
	if window > 0 {
		m.params["sliding_window"] = window
	}
	if len(m.shapes) > 0 {
		m.params["quantization"] = map[string]any{"qformat_weight": "bcml1", "shapes": m.shapes}
	}
	if shape, ok := m.shapes["layers.0.feed_forward.w1.weight"]; ok {
		m.params["hidden_dim"] = shape[0]
	}
	return nil
}

// Numbers of types and layouts.
const (
	typeU32           = 2
	dense, compressed = 0, 1
	mostSide          = 1 << 24 // of a matrix
	panelRows         = 64
	blockValues       = 32
	blockWords        = 5
)

// tensor finds a tensor's bytes, and names it.
func (m *model) tensor(n *node, name string) error {
	name += ".weight"
	if n == nil {
		return fmt.Errorf("tensor %s: is missing", name)
	}
	r, size := &numbers{n: n}, &numbers{n: n.child("shape").child("size"), at: "shape, size"}
	id, kind, layout := r.integer("id", 0), r.integer("dataType", 0), r.integer("layout", 0)
	columns, rows := size.integer("x", 1), size.integer("y", 1)
	deep := size.integer("z", 1) * size.integer("w", 1)
	if r.err == nil {
		r.err = size.err
	}
	if r.err == nil && (deep != 1 || columns > mostSide || rows > mostSide) {
		r.err = fmt.Errorf("has %d × %d × %d values, want a matrix", columns, rows, deep)
	}
	if r.err != nil {
		return fmt.Errorf("tensor %s: %w", name, r.err)
	}
	t := element.Stored{Tensor: element.Tensor{Name: name, Shape: []int{rows, columns}}}
	types := []element.Type{element.F16, element.F32, element.U32, element.BF16}
	switch {
	case layout == dense && kind != typeU32 && kind < len(types):
		t.Type = types[kind]
		if rows == 1 {
			t.Shape = t.Shape[1:]
		}
	case layout == compressed && kind == typeU32:
		t.Type = element.U32
		t.Shape = []int{(rows-1)/panelRows + 1, ((columns-1)/blockValues + 1) * blockWords, panelRows}
		m.shapes[name] = [2]int{rows, columns}
	default:
		return fmt.Errorf("tensor %s: is of type %d in layout %d, want FP16 (0), FP32 (1) or BF16 (3) in layout 0, or U32 (2) in "+
			"layout 1, BCML1", name, kind, layout)
	}
	n1, err := t.Count()
	if err == nil {
		t.Size = n1 * int64(t.Type.Size())
		t.Offset, err = m.pack.place(id, t.Size)
	}
	if err != nil {
		return fmt.Errorf("tensor %s: %w", name, err)
	}
	m.found = append(m.found, t)
	return nil
}

// numbers reads numbers of an element, and keeps the first fault.
type numbers struct {
	n   *node
	at  string // where it is, for faults
	err error
}

func (r *numbers) text(name string) string {
	c := r.n.child(name)
	if c == nil {
		r.fault(fmt.Errorf("%s %s is missing", r.at, name))
		return "0"
	}
	return c.text
}

func (r *numbers) fault(err error) {
	if r.err == nil {
		r.err = err
	}
}

// integer reads a number of at least some size.
func (r *numbers) integer(name string, least int) int {
	text := r.text(name)
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < int64(least) {
		r.fault(fmt.Errorf("%s is %.40q, want a whole number of at least %d", name, text, least))
		return least
	}
	return int(n)
}

// float reads a finite number above some other.
func (r *numbers) float(name string, above float64) float64 {
	text := r.text(name)
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > above) || math.IsInf(x, 0) {
		r.fault(fmt.Errorf("%s is %.40q, want a number above %v", name, text, above))
		return 1
	}
	return x
}
