package arch

import (
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
)

// A head that predicts the token after the next one (MTP). Paper: arXiv:2412.19437, section 2.2; compared with
// llama.cpp, qwen35.cpp, and vLLM, deepseek_mtp.py. It is one more layer of the file, and a program of its own: its row
// takes the embedding of a token and the hidden state of the row before that, both normalised, through one matrix; then
// come the layer, a norm and the output matrix. Hidden states are the trunk's, or, of tokens that the head itself has
// guessed, its own. A file may give the head tables of its own; else it has the trunk's.

const (
	// TargetRows and OwnRows are the inputs of a head's program: for each row the residual stream that the trunk's last
	// layer, or the head's own, left for the token before. Of the one that a row has not, all numbers are 0.
	TargetRows, OwnRows = "target", "own"

	nextKey = "nextn_predict_layers"
)

// trunk opens a program and says which layers it has. The last layers of a file may be heads: they are ignored. In
// the program of a head the first of them is the only layer; where a file has none, it is refused, and no list has it.
func (p *params) trunk(s *shape, b *ir.Builder) (x ir.Value, layers []int) {
	heads := p.nextLayers(s, b)
	s.layers -= heads
	switch {
	case p.options.Head && heads == 0:
		p.headless()
		return b.Embed("token_embd", s.vocab, s.width), nil
	case p.options.Head:
		return p.ahead(s, b), []int{s.layers}
	}
	for l := range s.layers {
		layers = append(layers, l)
	}
	return b.Embed("token_embd", s.vocab, s.width), layers
}

// nextLayers is how many of the last layers only predict tokens further on. Their tensors are ignored.
func (p *params) nextLayers(s *shape, b *ir.Builder) int {
	if !p.has(nextKey) {
		return 0
	}
	n := p.integer(nextKey, 0, s.layers-1)
	for l := range n {
		b.IgnoreLayer(s.layers - 1 - l)
	}
	return n
}

func (p *params) headless() {
	p.faultf("%s: this file has no head that predicts tokens further on", p.key(nextKey))
}

// ahead opens the program of a head. Where s.normed says so, hidden states are normalised as if logits followed.
func (p *params) ahead(s *shape, b *ir.Builder) ir.Value {
	s.next = "blk." + strconv.Itoa(s.layers) + ".nextn."
	if !b.Has(s.next + "eh_proj.weight") {
		p.headless()
	}
	b.Part()
	embedding := b.Embed(s.own(b, "embed_tokens", "token_embd"), s.vocab, s.width)
	target, own := b.Input(TargetRows, s.width, false), b.Input(OwnRows, s.width, false)
	if s.normed { // a row of zeros stays one
		target = b.RMSNorm(target, "output_norm", s.eps)
		own = b.RMSNorm(own, s.own(b, "shared_head_norm", "output_norm"), s.eps)
	}
	e := b.RMSNorm(embedding, s.next+"enorm", s.eps)
	h := b.RMSNorm(b.Add(target, own), s.next+"hnorm", s.eps)
	return b.Linear(b.HeadJoin(e, h, 1), s.next+"eh_proj", s.width)
}

// own is the name of a tensor of the head, or of the trunk's, if the head has none. Ling's last norm has another name.
// It is asked outside layers.
func (s *shape) own(b *ir.Builder, name, trunk string) string {
	ling := strings.TrimSuffix(s.next, "nextn.") + "layer_output_norm"
	switch {
	case s.next == "":
	case b.Has(s.next + name + ".weight"):
		return s.next + name
	case trunk == "output_norm" && b.Has(ling+".weight"):
		return ling
	}
	return trunk
}
