package pixels

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Names of inputs and outputs of a transformer's programs. Kept is 1 in rows of tokens and 0 in those that pad them,
// and Padding the other way round, as wide as the transformer.
const (
	Time      = "time"
	Condition = "condition"
	Patches   = "patches"
	Texts     = "texts"
	Kept      = "kept"
	Padding   = "padding"
	Tokens    = "tokens"
	Velocity  = "velocity"
)

// ZImageSettings are what shapes of tensors do not say of a Z-Image transformer.
type ZImageSettings struct {
	Axes  [3]int  // features of a head that turn by a token's place: in the text, down and across
	Theta float64 // of RoPE
	Scale float64 // of time, before it becomes waves
	Eps   float64 // of norms
}

// ZImageTurbo are the settings of the published model.
var ZImageTurbo = ZImageSettings{Axes: [3]int{32, 48, 48}, Theta: 256, Scale: 1000, Eps: 1e-5}

// ReadZImageSettings reads the config.json of a transformer, as diffusers has it.
func ReadZImageSettings(text []byte) (ZImageSettings, error) {
	var c struct {
		Class string  `json:"_class_name"`
		Axes  []int   `json:"axes_dims"`
		Theta float64 `json:"rope_theta"`
		Scale float64 `json:"t_scale"`
		Eps   float64 `json:"norm_eps"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return ZImageSettings{}, err
	}
	s := ZImageSettings{Theta: c.Theta, Scale: c.Scale, Eps: c.Eps}
	if c.Class != "ZImageTransformer2DModel" || len(c.Axes) != len(s.Axes) {
		return s, fmt.Errorf("_class_name is %.40q with %d axes_dims, want ZImageTransformer2DModel with 3", c.Class, len(c.Axes))
	}
	s.Axes = [3]int(c.Axes)
	return s, s.check()
}

func (s ZImageSettings) check() error {
	if err := checkAxes(s.Axes); err != nil {
		return err
	}
	const large = math.MaxFloat32
	if !(s.Theta >= 1 && s.Theta <= large) || !(s.Scale > 0 && s.Scale <= large) || !(s.Eps >= 0 && s.Eps < 1) {
		return fmt.Errorf("rope_theta is %v, t_scale %v, norm_eps %v: want 1 or more, more than 0, and less than 1", s.Theta,
			s.Scale, s.Eps)
	}
	return nil
}

// ZImage is the transformer of Z-Image: tokens of a text and patches of latents are refined apart, and then go through
// the same layers. Each part is a program of its own, since its rows are others'.
type ZImage struct {
	ZImageSettings
	Width     int
	Channels  int       // of a latent, of which a patch has 2 × 2
	TextWidth int       // of a text's rows
	Timed     *ir.Bound // from Time to Condition, one row
	Image     *ir.Bound // from Patches, Kept, Padding and Condition to Tokens
	Text      *ir.Bound // from Texts, Kept and Padding to Tokens
	Joint     *ir.Bound // from Tokens and Condition to Velocity
	Tensors   []Tensor
}

// NewZImage records the transformer that a file holds, with the names of diffusers, or those of its authors.
func NewZImage(file []ir.Tensor, s ZImageSettings) (*ZImage, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	z := &ZImage{ZImageSettings: s, Tensors: Tensors(file, zimageName)}
	r := mixer{sizes: sizesOf(z.Tensors), settings: s}
	if err := r.measure(z); err != nil {
		return nil, fmt.Errorf("no transformer that is known (Z-Image): %w", err)
	}
	begin := func() *ir.Builder {
		r.Builder = ir.NewBuilder("z-image", r.sizes.has)
		r.Ignore(zimageParts...)
		return r.Builder
	}
	err := recordParts(z.Tensors, begin, []part{{&z.Timed, r.timed}, {&z.Image, r.image}, {&z.Text, r.text},
		{&z.Joint, r.joint}})
	if err != nil {
		return nil, err
	}
	return z, nil
}

// zimageParts are the beginnings of all names.
var zimageParts = []string{"t_embedder.", "all_x_embedder.", "cap_embedder.", "x_pad_token", "cap_pad_token", "noise_refiner.",
	"context_refiner.", "layers.", "all_final_layer."}

// mixer records the parts of a transformer.
type mixer struct {
	*ir.Builder
	sizes    sizes
	settings ZImageSettings

	width, head, inner     int // features of a token, of a head, between a network's matrices
	condition, patch, caps int // features of a condition, a patch, a text's row
	middle                 int // features between the matrices of a time
}

// measure reads the sizes.
func (r *mixer) measure(z *ZImage) (err error) {
	read := func(out, in *int, name string) {
		o, i, e := r.sizes.matrix(name, 1)
		if *out, err = o, errors.Join(err, e); in != nil {
			*in = i
		}
	}
	var waves int
	read(&r.width, &r.patch, "all_x_embedder.2-1")
	read(&r.inner, nil, "layers.0.feed_forward.w1")
	read(&r.middle, &waves, "t_embedder.mlp.0")
	read(&r.condition, nil, "t_embedder.mlp.2")
	read(&r.width, &r.caps, "cap_embedder.1")
	if err != nil {
		return err
	}
	r.head = r.settings.Axes[0] + r.settings.Axes[1] + r.settings.Axes[2]
	switch {
	case waves != Waves:
		return fmt.Errorf("t_embedder.mlp.0.weight takes %d waves, want %d", waves, Waves)
	case r.patch%(Patch*Patch) != 0:
		return fmt.Errorf("all_x_embedder takes %d features, want patches of 2 × 2 latents", r.patch)
	case r.width%r.head != 0:
		return fmt.Errorf("%d features are no heads of %d, which axes_dims make", r.width, r.head)
	}
	z.Width, z.Channels, z.TextWidth = r.width, r.patch/(Patch*Patch), r.caps
	return nil
}

func (r *mixer) timed() {
	x := r.Input(Time, Waves, false)
	r.Block()
	x = r.Act(ir.SiLU, r.Linear(x, "t_embedder.mlp.0", r.middle))
	r.Output(Condition, r.Linear(x, "t_embedder.mlp.2", r.condition))
}

func (r *mixer) image() {
	x, kept := r.Input(Patches, r.patch, false), r.Input(Kept, 1, false)
	padding, c := r.Input(Padding, r.width, false), r.Input(Condition, r.condition, false)
	r.Block()
	x = r.padded(r.Linear(x, "all_x_embedder.2-1", r.width), kept, padding, "x_pad_token")
	r.Output(Tokens, r.layers(x, c, "noise_refiner"))
}

func (r *mixer) text() {
	x, kept, padding := r.Input(Texts, r.caps, false), r.Input(Kept, 1, false), r.Input(Padding, r.width, false)
	r.Block()
	x = r.Linear(r.RMSNorm(x, "cap_embedder.0", float32(r.settings.Eps)), "cap_embedder.1", r.width)
	x = r.padded(x, kept, padding, "cap_pad_token")
	r.Output(Tokens, r.layers(x, ir.NoValue, "context_refiner"))
}

func (r *mixer) joint() {
	const eps = 1e-6
	x, c := r.Input(Tokens, r.width, false), r.Input(Condition, r.condition, false)
	x = r.layers(x, c, "layers")
	r.Block()
	scale := r.Linear(r.Act(ir.SiLU, c), "all_final_layer.2-1.adaLN_modulation.1", r.width)
	x = r.scaled(r.BareLayerNorm(x, eps), scale)
	r.Output(Velocity, r.Linear(x, "all_final_layer.2-1.linear", r.patch))
}

// padded has a learned token in rows that pad others.
func (r *mixer) padded(x, kept, padding ir.Value, token string) ir.Value {
	return r.Add(r.Mul(x, kept), r.Affine(padding, token, r.width, "", 0))
}

// layers are those of a list; c may be NoValue.
func (r *mixer) layers(x, c ir.Value, list string) ir.Value {
	for l := range r.sizes.count(list, "attention_norm1.weight") {
		r.Block()
		x = r.layer(x, c, fmt.Sprintf("%s.%d.", list, l))
	}
	return x
}

// layer is attention and a network, each between two norms. The condition scales what goes in, and gates what comes
// out.
func (r *mixer) layer(x, c ir.Value, name string) ir.Value {
	eps := float32(r.settings.Eps)
	in, out := [2]ir.Value{ir.NoValue, ir.NoValue}, [2]ir.Value{ir.NoValue, ir.NoValue}
	if c != ir.NoValue {
		all := r.Linear(c, name+"adaLN_modulation.0", 4*r.width)
		for i := range in {
			in[i], out[i] = r.Slice(all, 2*i*r.width, r.width), r.Slice(all, (2*i+1)*r.width, r.width)
		}
	}
	h := r.scaled(r.RMSNorm(x, name+"attention_norm1", eps), in[0])
	x = r.Add(x, r.gated(r.RMSNorm(r.attention(h, name+"attention."), name+"attention_norm2", eps), out[0]))
	h = r.scaled(r.RMSNorm(x, name+"ffn_norm1", eps), in[1])
	f := name + "feed_forward."
	h = r.Linear(r.SwiGLU(r.Linear(h, f+"w1", r.inner), r.Linear(h, f+"w3", r.inner)), f+"w2", r.width)
	return r.Add(x, r.gated(r.RMSNorm(h, name+"ffn_norm2", eps), out[1]))
}

// scaled is x·(1+scale).
func (r *mixer) scaled(x, scale ir.Value) ir.Value {
	if scale == ir.NoValue {
		return x
	}
	return r.Add(x, r.Mul(x, scale))
}

// gated is x·tanh(gate).
func (r *mixer) gated(x, gate ir.Value) ir.Value {
	if gate == ir.NoValue {
		return x
	}
	return r.Mul(x, r.SoftCap(gate, 1))
}

func (r *mixer) attention(x ir.Value, name string) ir.Value {
	n, eps := r.width, float32(r.settings.Eps)
	var q, k, v ir.Value
	if r.sizes.has(name + "qkv.weight") {
		all := r.Linear(x, name+"qkv", 3*n)
		q, k, v = r.Slice(all, 0, n), r.Slice(all, n, n), r.Slice(all, 2*n, n)
	} else {
		q, k, v = r.Linear(x, name+"to_q", n), r.Linear(x, name+"to_k", n), r.Linear(x, name+"to_v", n)
	}
	turns := turns(r.settings.Axes, r.settings.Theta)
	q = r.Rope(r.HeadNorm(q, name+"norm_q", r.head, eps), turns, "")
	k = r.Rope(r.HeadNorm(k, name+"norm_k", r.head, eps), turns, "")
	heads := n / r.head
	a := ir.AttendArgs{Heads: heads, KVHeads: heads, KDim: r.head, VDim: r.head, Both: true,
		Scale: float32(1 / math.Sqrt(float64(r.head)))}
	return r.Linear(r.Attend(q, k, v, a), name+"to_out.0", n)
}

// WavesOf are the waves of a time from 0, noise, to 1.
func (s ZImageSettings) WavesOf(time float64) []float32 { return waves(time * s.Scale) }

// zimageName is how a tensor is called by diffusers.
func zimageName(name string) string {
	name = strings.TrimPrefix(name, "model.diffusion_model.")
	for old, now := range map[string]string{"x_embedder.": "all_x_embedder.2-1.", "final_layer.": "all_final_layer.2-1."} {
		if rest, ok := strings.CutPrefix(name, old); ok {
			name = now + rest
		}
	}
	return strings.NewReplacer(".attention.out.", ".attention.to_out.0.", ".attention.q_norm.", ".attention.norm_q.",
		".attention.k_norm.", ".attention.norm_k.").Replace(name)
}
