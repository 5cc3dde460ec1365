package pixels

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
)

// States is the output of an encoder: its rows after the last norm.
const States = "states"

// Encoder is an encoder of texts, whose rows of the embedding come from the caller.
type Encoder struct {
	*ir.Bound     // from Texts to States
	Tensors       []Tensor
	Embedding     int // index of the table of tokens among Tensors
	Width, Tokens int // features of a row; entries of the table
	Positions     int // the most tokens of a text; 0: any number
}

// TextSettings are what shapes of tensors do not say of an encoder of texts.
type TextSettings struct {
	Heads int
	Eps   float64
	Far   int // the distance from which on all of T5's biases are the same
}

// Settings of the published encoders of FLUX.1.
var (
	ClipL = TextSettings{Heads: 12, Eps: 1e-5}
	T5XXL = TextSettings{Heads: 64, Eps: 1e-6, Far: 128}
)

// ReadTextSettings reads the config.json of an encoder of a kind that transformers calls CLIPTextModel or
// T5EncoderModel.
func ReadTextSettings(text []byte) (kind string, s TextSettings, err error) {
	var c struct {
		Classes   []string `json:"architectures"`
		ClipHeads int      `json:"num_attention_heads"`
		ClipEps   float64  `json:"layer_norm_eps"`
		Act       string   `json:"hidden_act"`
		T5Heads   int      `json:"num_heads"`
		T5Eps     float64  `json:"layer_norm_epsilon"`
		Far       int      `json:"relative_attention_max_distance"`
		Network   string   `json:"feed_forward_proj"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return "", s, err
	}
	kind = strings.Join(c.Classes, ", ")
	switch {
	case kind == "CLIPTextModel" && c.Act == "quick_gelu":
		s = TextSettings{Heads: c.ClipHeads, Eps: c.ClipEps}
	case kind == "T5EncoderModel" && c.Network == "gated-gelu":
		s = TextSettings{Heads: c.T5Heads, Eps: c.T5Eps, Far: c.Far}
		if s.Far == 0 {
			s.Far = T5XXL.Far
		}
	default:
		return "", s, fmt.Errorf("architectures are %.60q, with hidden_act %.40q or feed_forward_proj %.40q: want CLIPTextModel "+
			"with quick_gelu, or T5EncoderModel with gated-gelu", kind, c.Act, c.Network)
	}
	return kind, s, s.check()
}

func (s TextSettings) check() error {
	const most = 1 << 12
	if s.Heads < 1 || s.Heads > most || !(s.Eps >= 0 && s.Eps < 1) || s.Far < 0 || s.Far > most {
		return fmt.Errorf("%d heads, an epsilon of %v, distances up to %d: want 1 to %d, less than 1, and at most %d", s.Heads, s.Eps,
			s.Far, most, most)
	}
	return nil
}

// NewClip records the encoder of texts of a CLIP model.
func NewClip(file []ir.Tensor, s TextSettings) (*Encoder, error) {
	return newEncoder("clip", file, s, clipTable, (*encoding).clip, clipName)
}

// NewT5 records the encoder of a T5 model with a gated network (version 1.1).
func NewT5(file []ir.Tensor, s TextSettings) (*Encoder, error) {
	return newEncoder("t5", file, s, "shared", (*encoding).t5, t5Name)
}

// encoding records an encoder.
type encoding struct {
	*ir.Builder
	sizes    sizes
	settings TextSettings

	width, all int // features of a row, and of all heads together
	to         *Encoder
}

func newEncoder(kind string, file []ir.Tensor, s TextSettings, embedding string, record func(*encoding) error,
	rename func(string) string) (*Encoder, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	e := &Encoder{Tensors: Tensors(file, rename), Embedding: -1}
	r := &encoding{sizes: sizesOf(e.Tensors), settings: s, to: e}
	r.Builder = ir.NewBuilder(kind, r.sizes.has)
	for i := range e.Tensors {
		if e.Tensors[i].Name == embedding+".weight" && len(e.Tensors[i].Shape) == 2 {
			e.Embedding, e.Width, e.Tokens = i, e.Tensors[i].Shape[0], e.Tensors[i].Shape[1]
		}
	}
	const most = 1 << 20
	if e.Width < 1 || e.Width > most || e.Tokens < 1 {
		return nil, fmt.Errorf("no encoder of the kind %s: %s.weight is no table of tokens", kind, embedding)
	}
	r.width = e.Width
	r.Ignore(embedding+".weight", "embeddings.position_ids", "encoder.embed_tokens.weight", "logit_scale", "text_projection.weight",
		"vision_model.", "visual_projection.weight")
	if err := record(r); err != nil {
		return nil, fmt.Errorf("no encoder of the kind %s: %w", kind, err)
	}
	p, err := r.Program(0)
	if err == nil {
		e.Bound, err = bind(p, e.Tensors)
	}
	return e, err
}

// heads reads the features of all heads from their first matrix.
func (r *encoding) heads(name string) (err error) {
	if r.all, _, err = r.sizes.matrix(name, 1); err == nil && r.all%r.settings.Heads != 0 {
		err = fmt.Errorf("%d features are not %d heads", r.all, r.settings.Heads)
	}
	return err
}

func (r *encoding) args() ir.AttendArgs {
	n := r.settings.Heads
	return ir.AttendArgs{Heads: n, KVHeads: n, KDim: r.all / n, VDim: r.all / n}
}

func (r *encoding) clip() error {
	const layer = "encoder.layers"
	inner, _, err := r.sizes.matrix(layer+".0.mlp.fc1", 1)
	if err != nil {
		return err
	}
	if err := r.heads(layer + ".0.self_attn.q_proj"); err != nil {
		return err
	}
	if r.to.Positions, _, err = r.sizes.matrix("embeddings.position_embedding", 1); err != nil {
		return err
	}
	eps, a := float32(r.settings.Eps), r.args()
	a.Scale = float32(1 / math.Sqrt(float64(a.KDim)))
	x := r.Input(Texts, r.width, false)
	r.Block()
	x = r.Position(x, "embeddings.position_embedding", r.to.Positions)
	for l := range r.sizes.count(layer, "mlp.fc1.weight") {
		at := fmt.Sprintf("%s.%d.", layer, l)
		r.Block()
		h := r.LayerNorm(x, at+"layer_norm1", eps)
		q, k, v := r.Linear(h, at+"self_attn.q_proj", r.all), r.Linear(h, at+"self_attn.k_proj", r.all),
			r.Linear(h, at+"self_attn.v_proj", r.all)
		x = r.Add(x, r.Linear(r.Attend(q, k, v, a), at+"self_attn.out_proj", r.width))
		h = r.Linear(r.LayerNorm(x, at+"layer_norm2", eps), at+"mlp.fc1", inner)
		h = r.Mul(h, r.Act(ir.Sigmoid, r.Scale(h, 1.702)))
		x = r.Add(x, r.Linear(h, at+"mlp.fc2", r.width))
	}
	r.Block()
	r.Output(States, r.LayerNorm(x, "final_layer_norm", eps))
	return nil
}

func (r *encoding) t5() error {
	const layer, first = "encoder.block", "encoder.block.0.layer.0.SelfAttention."
	inner, _, err := r.sizes.matrix(layer+".0.layer.1.DenseReluDense.wi_0", 1)
	if err != nil {
		return err
	}
	if err := r.heads(first + "q"); err != nil {
		return err
	}
	eps, a := float32(r.settings.Eps), r.args()
	a.Both, a.Scale, a.Farthest = true, 1, r.settings.Far
	if a.Buckets, _, err = r.sizes.matrix(t5Bias, 1); err != nil {
		return err
	}
	x := r.Input(Texts, r.width, false)
	for l := range r.sizes.count(layer, "layer.0.layer_norm.weight") {
		at := fmt.Sprintf("%s.%d.layer.", layer, l)
		r.Block()
		h := r.RMSNorm(x, at+"0.layer_norm", eps)
		q, k, v := r.Linear(h, at+"0.SelfAttention.q", r.all), r.Linear(h, at+"0.SelfAttention.k", r.all),
			r.Linear(h, at+"0.SelfAttention.v", r.all)
		h = r.AttendBiased(q, k, v, t5Bias, a)
		x = r.Add(x, r.Linear(h, at+"0.SelfAttention.o", r.width))
		h, at = r.RMSNorm(x, at+"1.layer_norm", eps), at+"1.DenseReluDense."
		h = r.GLU(ir.GELU, r.Linear(h, at+"wi_0", inner), r.Linear(h, at+"wi_1", inner))
		x = r.Add(x, r.Linear(h, at+"wo", r.width))
	}
	r.Block()
	r.Output(States, r.RMSNorm(x, "encoder.final_layer_norm", eps))
	return nil
}
