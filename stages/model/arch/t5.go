package arch

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
)

// T5, FLAN-T5, MADLAD-400: an encoder reads the prompt, and a decoder answers. Paper: arXiv:1910.10683; compared
// with llama.cpp. The program is the decoder's. The rows of a prompt are what the encoder made of it (RecordEar), in
// place of those of the embedding: layers take keys and values of them, and compute nothing else that is seen. Behind
// them stand the token that begins an answer, and the answer.
// Differs from Llama: norms and biases by distance are T5's, and no scores are scaled; behind self-attention each layer
// attends to the prompt.
func t5(p *params, b *ir.Builder) {
	s, said := p.t5()
	s.layers = p.countOr("decoder_block_count", maxLayers, s.layers)
	p.t5Begin()
	heard := said
	said.Side, heard.Side, heard.Buckets, heard.Farthest = ir.SaidSide, ir.HeardSide, 0, 0

	prompt := b.Embed("token_embd", s.vocab, s.width)
	x := prompt
	for l := range s.layers {
		b.Layer(l)
		x = s.t5Attend(b, x, "dec", l, said)
		n := b.RMSNorm(x, "cross_attn_norm", s.eps)
		q, k := b.Linear(n, "cross_attn_q", s.heads*s.kDim), b.Linear(prompt, "cross_attn_k", s.kvHeads*s.kDim)
		o := b.Attend(q, k, b.Linear(prompt, "cross_attn_v", s.kvHeads*s.vDim), heard)
		x = b.Add(x, b.Linear(o, "cross_attn_o", s.width))
		x = s.t5FFN(b, x)
		b.Ignore(fmt.Sprintf("dec.blk.%d.cross_attn_rel_b.weight", l)) // of the first T5, which has no use for them
	}
	b.Ignore("enc.")
	b.Head(b.RMSNorm(b.Rows(x), "dec.output_norm", s.eps), "output", "token_embd")
}

// t5Encoder is T5's encoder.
// Differs from BERT: RMS norms come before each block; scores are not scaled, and have biases by distance, of a table
// that layers share if they have none; the feed-forward network is gated by GELU, or has ReLU and no gate.
func t5Encoder(p *params, b *ir.Builder) {
	s, a := p.t5()
	a.Both = true
	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = s.t5FFN(b, s.t5Attend(b, x, "enc", l, a))
	}
	b.Vectors(b.RMSNorm(b.Pool(x), "enc.output_norm", s.eps))
	b.Pooling(p.pooling())
}

// t5 is the shape of T5's layers, and their attention to the rows of their own text.
func (p *params) t5() (shape, ir.AttendArgs) {
	const farthest = 128 // files do not carry it
	s := p.dense("attention.layer_norm_rms_epsilon")
	a := s.attention()
	a.Scale, a.Farthest = 1, farthest
	a.Buckets = p.count("attention.relative_buckets_count", farthest-1)
	return s, a
}

// t5Attend opens the weights of layer l of a part, and adds what its rows see of their own text.
func (s *shape) t5Attend(b *ir.Builder, x ir.Value, part string, l int, a ir.AttendArgs) ir.Value {
	b.Within(fmt.Sprintf("%s.blk.%d.", part, l))
	biases := part + ".blk.0.attn_rel_b"
	if b.Has("attn_rel_b.weight") {
		biases = fmt.Sprintf("%s.blk.%d.attn_rel_b", part, l)
	}
	n := b.RMSNorm(x, "attn_norm", s.eps)
	q, k := b.Linear(n, "attn_q", s.heads*s.kDim), b.Linear(n, "attn_k", s.kvHeads*s.kDim)
	o := b.AttendBiased(q, k, b.Linear(n, "attn_v", s.kvHeads*s.vDim), biases, a)
	return b.Add(x, b.Linear(o, "attn_o", s.width))
}

// t5FFN adds the feed-forward network.
func (s *shape) t5FFN(b *ir.Builder, x ir.Value) ir.Value {
	b.FFN()
	n := b.RMSNorm(x, "ffn_norm", s.eps)
	if b.Has("ffn_gate.weight") {
		return b.Add(x, s.gated(b, n, ir.GELU))
	}
	return b.Add(x, s.ungated(b, n, ir.ReLU))
}

// t5Begin is the token that answers begin behind.
func (p *params) t5Begin() int32 { return int32(p.integer("decoder_start_token_id", 0, maxVocab-1)) }

// Ear is what reads prompts for a model whose rows see that, and not the prompt's tokens.
type Ear struct {
	Program *ir.Program // an encoder, of the same file
	Begin   int32       // the token that the model's answers begin behind
}

// Hears says whether an encoder reads prompts for the model.
func Hears(m *meta.Map) bool {
	name, err := m.String("general.architecture")
	return err == nil && name == "t5"
}

// RecordEar makes the encoder that reads a model's prompts; nil: the model reads them itself.
func RecordEar(m *meta.Map, has func(name string) bool) (*Ear, error) {
	if !Hears(m) {
		return nil, nil //nolint:nilnil // most models read prompts themselves
	}
	p := &params{meta: m, arch: "t5"}
	b := ir.NewBuilder(p.arch, has)
	b.Part()
	t5Encoder(p, b)
	e := &Ear{Begin: p.t5Begin()}
	if len(p.faults) > 0 {
		return nil, fmt.Errorf("metadata of %s: %w", p.arch, errors.Join(p.faults...))
	}
	var err error
	e.Program, err = b.Program(p.context)
	return e, err
}
