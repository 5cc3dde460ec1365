package pixels

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Names of more inputs and outputs of a transformer's programs. Those that begin a name have a block's number after it.
const (
	Guidance  = "guidance"
	Pooled    = "pooled"
	Seen      = "seen " // what attention left for a block's rows
	Query     = "query "
	Key       = "key "
	Value     = "value "
	Modulated = "modulated " // what a condition makes of a block's norms and gates, in the order of Flux.Made
)

// FluxSettings are what shapes of tensors do not say of a FLUX transformer.
type FluxSettings struct {
	Axes [3]int // features of a head that turn by a token's place: of a text, down and across
}

// Flux1 are the settings of the published models.
var Flux1 = FluxSettings{Axes: [3]int{16, 56, 56}}

// Constants of all FLUX.1 transformers.
const (
	fluxTheta = 10000
	fluxScale = 1000 // of time and guidance, before they become waves
	fluxEps   = 1e-6
)

// ReadFluxSettings reads the config.json of a transformer, as diffusers has it.
func ReadFluxSettings(text []byte) (FluxSettings, error) {
	var c struct {
		Class string `json:"_class_name"`
		Axes  []int  `json:"axes_dims_rope"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return FluxSettings{}, err
	}
	s := Flux1
	if c.Class != "FluxTransformer2DModel" || c.Axes != nil && len(c.Axes) != len(s.Axes) {
		return s, fmt.Errorf("_class_name is %.40q with %d axes_dims_rope, want FluxTransformer2DModel with 3", c.Class, len(c.Axes))
	}
	if c.Axes != nil {
		s.Axes = [3]int(c.Axes)
	}
	return s, checkAxes(s.Axes)
}

// Flux is the transformer of FLUX.1. Tokens of a text and patches of latents have matrices of their own in the first
// blocks, and see each other; the other blocks treat them alike. Each kind of rows has a program. What a condition
// makes of norms and gates is the same for all rows: Timed computes it once an evaluation, and the others take it as
// weights, whose names are in Made.
type Flux struct {
	FluxSettings
	Width, Heads int
	Channels     int       // of a latent, of which a patch has 2 × 2
	TextWidth    int       // of a text's rows
	PooledWidth  int       // of the vector of a whole text
	Guided       bool      // it takes a guidance
	Timed        *ir.Bound // from Time, Pooled and perhaps Guidance to Modulated, one row
	Image        *ir.Bound // from Patches and Seen to Query, Key, Value, block by block, and Tokens
	Text         *ir.Bound // the same from Texts
	Attention    *ir.Bound // from Query, Key and Value of texts, then images, to Seen; without numbers
	Joint        *ir.Bound // from Tokens of texts, then images, to Velocity
	Made         [][]Made  // by number of a Modulated
	Tensors      []Tensor
}

// Made is a weight that a condition makes: the next Width numbers of a Modulated, to which More is added.
type Made struct {
	Name string
	More float32
}

// NewFlux records the transformer that a file holds, with the names of diffusers, or those of its authors.
func NewFlux(file []ir.Tensor, s FluxSettings) (*Flux, error) {
	if err := checkAxes(s.Axes); err != nil {
		return nil, err
	}
	f := &Flux{FluxSettings: s, Tensors: Tensors(file, fluxName)}
	r := fluxer{sizes: sizesOf(f.Tensors), to: f}
	if err := r.measure(); err != nil {
		return nil, fmt.Errorf("no transformer that is known (FLUX.1): %w", err)
	}
	r.make()
	begin := func() *ir.Builder {
		r.Builder = ir.NewBuilder("flux", r.sizes.has)
		r.Part()
		return r.Builder
	}
	err := recordParts(f.Tensors, begin, []part{{&f.Timed, r.timed},
		{&f.Image, func() { r.stream(Patches, "x_embedder", &image) }},
		{&f.Text, func() { r.stream(Texts, "context_embedder", &text) }}, {&f.Attention, r.attention}, {&f.Joint, r.joint}})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// fluxer records the parts of a transformer.
type fluxer struct {
	*ir.Builder
	to    *Flux
	sizes sizes

	width, head, heads int // features of a row and of a head; heads

	inner, middle    int  // features between a network's matrices, and those of a time
	doubles, singles int  // blocks
	swapped          bool // the last norm's shift comes before its scale, as its authors have it
}

// measure reads the sizes.
func (r *fluxer) measure() (err error) {
	read := func(out, in *int, name string) {
		o, i, e := r.sizes.matrix(name, 1)
		if *out, err = o, errors.Join(err, e); in != nil {
			*in = i
		}
	}
	var patch, waves int
	read(&r.width, &patch, "x_embedder")
	read(&r.width, &r.to.TextWidth, "context_embedder")
	read(&r.middle, &waves, "time_text_embed.timestep_embedder.linear_1")
	read(&r.middle, &r.to.PooledWidth, "time_text_embed.text_embedder.linear_1")
	read(&r.inner, nil, "transformer_blocks.0.ff.net.0.proj")
	if err != nil {
		return err
	}
	for _, n := range r.to.Axes {
		r.head += n
	}
	switch {
	case waves != Waves:
		return fmt.Errorf("time_text_embed.timestep_embedder takes %d waves, want %d", waves, Waves)
	case patch%(Patch*Patch) != 0:
		return fmt.Errorf("x_embedder takes %d features, want patches of 2 × 2 latents", patch)
	case r.width%r.head != 0:
		return fmt.Errorf("%d features are no heads of %d, which axes_dims_rope make", r.width, r.head)
	}
	r.heads = r.width / r.head
	r.to.Width, r.to.Heads, r.to.Channels = r.width, r.heads, patch/(Patch*Patch)
	r.to.Guided = r.sizes.has("time_text_embed.guidance_embedder.linear_1.weight")
	r.doubles = r.sizes.count("transformer_blocks", "ff.net.0.proj.weight")
	r.singles = r.sizes.count("single_transformer_blocks", "norm.linear.weight")
	r.swapped = r.sizes.has(swapped + ".weight")
	return nil
}

// names are those of a block's parts for one kind of rows.
type names struct{ norm, q, k, v, all, normQ, normK, out, network string }

var (
	image = names{"norm1", "attn.to_q", "attn.to_k", "attn.to_v", "attn.to_qkv", "attn.norm_q", "attn.norm_k", "attn.to_out.0",
		"ff.net."}
	text = names{"norm1_context", "attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj", "attn.add_qkv_proj",
		"attn.norm_added_q", "attn.norm_added_k", "attn.to_add_out", "ff_context.net."}
)

func double(l int) string { return fmt.Sprintf("transformer_blocks.%d.", l) }
func single(l int) string { return fmt.Sprintf("single_transformer_blocks.%d.", l) }

// Parts of what a condition makes.
const (
	gate    = ".gate.weight"
	norm    = ".norm"
	last    = "norm_out"
	swapped = last + ".swapped" // the name here of a matrix whose halves are the other way round
)

// make lists the weights that a condition makes, and adds them to the tensors.
func (r *fluxer) make() {
	normed := func(name string) []Made { return []Made{{name + ".bias", 0}, {name + ".weight", 1}} }
	for l := range r.doubles {
		for _, n := range []*names{&image, &text} {
			at, network := double(l)+n.norm, double(l)+n.network
			made := append(normed(at+norm), Made{at + gate, 0})
			r.to.Made = append(r.to.Made, append(append(made, normed(network+norm)...), Made{network + gate, 0}))
		}
	}
	for l := range r.singles {
		r.to.Made = append(r.to.Made, append(normed(single(l)+norm), Made{single(l) + gate, 0}))
	}
	final := normed(last)
	if !r.swapped {
		final[0], final[1] = final[1], final[0]
	}
	r.to.Made = append(r.to.Made, final)
	for _, list := range r.to.Made {
		for _, m := range list {
			r.to.Tensors = append(r.to.Tensors, Tensor{Tensor: ir.Tensor{Name: m.Name, Shape: []int{r.width}}, From: Computed})
		}
	}
}

func (r *fluxer) timed() {
	const name = "time_text_embed."
	embedded := func(x ir.Value, embedder string) ir.Value {
		x = r.Linear(x, name+embedder+".linear_1", r.middle)
		return r.Linear(r.Act(ir.SiLU, x), name+embedder+".linear_2", r.width)
	}
	time, pooled, guidance := r.Input(Time, Waves, false), r.Input(Pooled, r.to.PooledWidth, false), ir.NoValue
	if r.to.Guided {
		guidance = r.Input(Guidance, Waves, false)
	}
	r.Block()
	c := embedded(time, "timestep_embedder")
	if r.to.Guided {
		c = r.Add(c, embedded(guidance, "guidance_embedder"))
	}
	c = r.Act(ir.SiLU, r.Add(c, embedded(pooled, "text_embedder")))
	i := 0
	modulated := func(matrix string) {
		r.Block() // so that these matrices, a quarter of the transformer, can be streamed one by one
		r.Output(fmt.Sprint(Modulated, i), r.Linear(c, matrix, len(r.to.Made[i])*r.width))
		i++
	}
	for l := range r.doubles {
		modulated(double(l) + image.norm + ".linear")
		modulated(double(l) + text.norm + ".linear")
	}
	for l := range r.singles {
		modulated(single(l) + "norm.linear")
	}
	if r.swapped {
		modulated(swapped)
	} else {
		modulated(last + ".linear")
	}
}

// stream records the first blocks for one kind of rows: each begins with queries, keys and values, and goes on in the
// next segment with what attention saw.
func (r *fluxer) stream(input, embedder string, n *names) {
	x := r.Input(input, r.sizes[embedder+".weight"][0], false)
	seen := make([]ir.Value, r.doubles)
	for l := range seen {
		seen[l] = r.Input(fmt.Sprint(Seen, l), r.width, false)
	}
	r.Block()
	x = r.Linear(x, embedder, r.width)
	for l := range r.doubles {
		at := double(l)
		h := r.LayerNorm(x, at+n.norm+norm, fluxEps)
		q, k, v := r.asked(h, at, n)
		r.Output(fmt.Sprint(Query, l), q)
		r.Output(fmt.Sprint(Key, l), k)
		r.Output(fmt.Sprint(Value, l), v)
		r.Block()
		x = r.Add(x, r.Affine(r.Linear(seen[l], at+n.out, r.width), at+n.norm+gate, r.width, "", 0))
		at += n.network
		h = r.Linear(r.LayerNorm(x, at+norm, fluxEps), at+"0.proj", r.inner)
		h = r.Linear(r.Act(ir.GELU, h), at+"2", r.width)
		x = r.Add(x, r.Affine(h, at+gate, r.width, "", 0))
	}
	r.Output(Tokens, x)
}

// asked are queries, keys and values, normed and turned.
func (r *fluxer) asked(x ir.Value, at string, n *names) (q, k, v ir.Value) {
	if r.sizes.has(at + n.all + ".weight") {
		all := r.Linear(x, at+n.all, 3*r.width)
		q, k, v = r.Slice(all, 0, r.width), r.Slice(all, r.width, r.width), r.Slice(all, 2*r.width, r.width)
	} else {
		q, k, v = r.Linear(x, at+n.q, r.width), r.Linear(x, at+n.k, r.width), r.Linear(x, at+n.v, r.width)
	}
	return r.turned(q, at+n.normQ), r.turned(k, at+n.normK), v
}

func (r *fluxer) turned(x ir.Value, name string) ir.Value {
	return r.Rope(r.HeadNorm(x, name, r.head, fluxEps), turns(r.to.Axes, fluxTheta), "")
}

func (r *fluxer) attention() {
	q, k, v := r.Input(Query, r.width, false), r.Input(Key, r.width, false), r.Input(Value, r.width, false)
	r.Block()
	r.Output(Seen, r.attend(q, k, v))
}

func (r *fluxer) attend(q, k, v ir.Value) ir.Value {
	return r.Attend(q, k, v, ir.AttendArgs{Heads: r.heads, KVHeads: r.heads, KDim: r.head, VDim: r.head, Both: true,
		Scale: float32(1 / math.Sqrt(float64(r.head)))})
}

// joint records the blocks that treat all rows alike, and what latents they leave, in all rows.
func (r *fluxer) joint() {
	x := r.Input(Tokens, r.width, false)
	for l := range r.singles {
		r.Block()
		at := single(l)
		h := r.LayerNorm(x, at+norm, fluxEps)
		var q, k, v, mlp ir.Value
		if r.sizes.has(at + "linear1.weight") {
			all := r.Linear(h, at+"linear1", 3*r.width+r.inner)
			q, k = r.turned(r.Slice(all, 0, r.width), at+"attn.norm_q"), r.turned(r.Slice(all, r.width, r.width), at+"attn.norm_k")
			v, mlp = r.Slice(all, 2*r.width, r.width), r.Slice(all, 3*r.width, r.inner)
		} else {
			q, k, v = r.asked(h, at, &image)
			mlp = r.Linear(h, at+"proj_mlp", r.inner)
		}
		h = r.Linear(r.HeadJoin(r.attend(q, k, v), r.Act(ir.GELU, mlp), 1), at+"proj_out", r.width)
		x = r.Add(x, r.Affine(h, at+gate, r.width, "", 0))
	}
	r.Block()
	r.Output(Velocity, r.Linear(r.LayerNorm(x, last, fluxEps), "proj_out", Patch*Patch*r.to.Channels))
}

// WavesOf are the waves of a level of noise, or of a guidance.
func (FluxSettings) WavesOf(x float64) []float32 { return waves(x * fluxScale) }

// fluxNames are how diffusers calls parts of names of the authors. Longer ones come before those that begin alike.
var fluxNames = strings.NewReplacer("double_blocks.", "transformer_blocks.", "single_blocks.", "single_transformer_blocks.",
	"img_in.", "x_embedder.", "txt_in.", "context_embedder.", "time_in.in_layer", "time_text_embed.timestep_embedder.linear_1",
	"time_in.out_layer", "time_text_embed.timestep_embedder.linear_2", "vector_in.in_layer", "time_text_embed.text_embedder.linear_1",
	"vector_in.out_layer", "time_text_embed.text_embedder.linear_2", "guidance_in.in_layer",
	"time_text_embed.guidance_embedder.linear_1", "guidance_in.out_layer", "time_text_embed.guidance_embedder.linear_2",
	"img_mod.lin", "norm1.linear", "txt_mod.lin", "norm1_context.linear", "img_attn.qkv", "attn.to_qkv", "txt_attn.qkv",
	"attn.add_qkv_proj", "img_attn.norm.query_norm.scale", "attn.norm_q.weight", "img_attn.norm.key_norm.scale",
	"attn.norm_k.weight", "txt_attn.norm.query_norm.scale", "attn.norm_added_q.weight", "txt_attn.norm.key_norm.scale",
	"attn.norm_added_k.weight", "img_attn.proj", "attn.to_out.0", "txt_attn.proj", "attn.to_add_out", "img_mlp.0", "ff.net.0.proj",
	"img_mlp.2", "ff.net.2", "txt_mlp.0", "ff_context.net.0.proj", "txt_mlp.2", "ff_context.net.2", "modulation.lin",
	"norm.linear", "linear2", "proj_out", "norm.query_norm.scale", "attn.norm_q.weight", "norm.key_norm.scale",
	"attn.norm_k.weight", "final_layer.linear", "proj_out", "final_layer.adaLN_modulation.1", swapped)

// fluxName is how a tensor is called by diffusers.
func fluxName(name string) string {
	name = strings.TrimPrefix(name, "model.diffusion_model.")
	if beginsAny(name, "double_blocks.", "single_blocks.", "img_in.", "txt_in.", "time_in.", "vector_in.", "guidance_in.",
		"final_layer.") {
		return fluxNames.Replace(name)
	}
	return name
}

func beginsAny(s string, all ...string) bool {
	for _, x := range all {
		if strings.HasPrefix(s, x) {
			return true
		}
	}
	return false
}
