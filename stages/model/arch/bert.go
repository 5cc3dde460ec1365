package arch

import "github.com/sluice-ai/sluice/internal/ir"

// BERT, with RoPE jina-bert-v3, with a gated feed-forward network too NomicBERT, and with experts in every other layer
// nomic-bert-moe.
// Papers: arXiv:1810.04805, arXiv:2402.01613, arXiv:2502.07972; checked against transformers, modeling_bert.py and
// modeling_nomic_bert.py; jina-bert-v3 and nomic-bert-moe compared with llama.cpp.
// Differs from Llama: rows see those after them; LayerNorm comes after each sum; positions are learned (NomicBERT: RoPE
// turns halves); the end is a vector for each row. A text's tokens are of the first type; of a pair, which rerankers
// read, those behind the first separator are of the second. A reranker scores its first row by two more matrices.
func bert(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_epsilon")
	a := s.attention()
	a.Both = true
	turned := p.arch != "bert"
	feed := p.bertFeed(&s)
	var r rope
	if turned {
		r = p.rope(&s, halves, 10000)
	}

	x := b.Embed("token_embd", s.vocab, s.width)
	if b.Has("token_types.weight") {
		x = p.typed(b, x)
	}
	if !turned {
		x = b.Position(x, "position_embd", p.context)
	}
	x = b.LayerNorm(x, "token_embd_norm", s.eps)
	for l := range s.layers {
		b.Layer(l)
		q, k, v := s.qkv(b, x)
		if turned {
			q, k = r.turn(b, q), r.turn(b, k)
		}
		o := b.Linear(b.Attend(q, k, v, a), "attn_output", s.width)
		x = b.LayerNorm(b.Add(x, o), "attn_output_norm", s.eps)
		b.FFN()
		x = b.LayerNorm(b.Add(x, feed(b, x, l)), "layer_output_norm", s.eps)
	}
	x = b.Pool(x)
	if p.pooling() == ir.PoolRank {
		if b.Has("cls.weight") {
			x = b.SoftCap(b.Linear(x, "cls", s.width), 1) // tanh
		}
		x = b.Linear(x, "cls.output", p.labels())
	}
	b.Vectors(x)
	b.Pooling(p.pooling())
	b.Ignore("cls.", "pooler.")
}

// bertFeed is the feed-forward network of a layer.
func (p *params) bertFeed(s *shape) func(b *ir.Builder, x ir.Value, layer int) ir.Value {
	switch {
	case p.arch == "nomic-bert-moe":
		m := p.mixture(s, ir.RouteArgs{Scoring: ir.SoftmaxAll})
		m.ungated, m.act = true, ir.GELUErf
		every := p.countOr("moe_every_n_layers", maxLayers, 1)
		return func(b *ir.Builder, x ir.Value, layer int) ir.Value {
			if layer%every == 1 {
				return m.network(b, x)
			}
			return s.ungated(b, x, ir.GELUErf)
		}
	case p.hasExperts():
		p.faultf("%s: %s has no experts, or they are not supported yet", p.key("expert_count"), p.arch)
	}
	return func(b *ir.Builder, x ir.Value, _ int) ir.Value {
		if p.arch == "nomic-bert" {
			return s.swiglu(b, x)
		}
		return s.ungated(b, x, ir.GELUErf)
	}
}

// qkv returns Q, K and V, from one matrix or from three, clipped if the shape says so.
func (s *shape) qkv(b *ir.Builder, x ir.Value) (q, k, v ir.Value) {
	n, kv, vv := s.heads*s.kDim, s.kvHeads*s.kDim, s.kvHeads*s.vDim
	if !b.Has("attn_qkv.weight") {
		return s.clipped(b, b.Linear(x, "attn_q", n)), s.clipped(b, b.Linear(x, "attn_k", kv)),
			s.clipped(b, b.Linear(x, "attn_v", vv))
	}
	all := s.clipped(b, b.Linear(x, "attn_qkv", n+kv+vv))
	return b.Slice(all, 0, n), b.Slice(all, n, kv), b.Slice(all, n+kv, vv)
}

// pooling is how rows become the vector of a text.
func (p *params) pooling() ir.Pooling {
	if !p.has("pooling_type") {
		return ir.PoolNone
	}
	return ir.Pooling(p.integer("pooling_type", 0, int(ir.PoolRank)))
}

// typed adds to each token's vector that of the token's type.
func (p *params) typed(b *ir.Builder, x ir.Value) ir.Value {
	const name, separator = "token_types.weight", "tokenizer.ggml.seperator_token_id"
	types := p.tokenTypes()
	if types == 1 || p.pooling() != ir.PoolRank || !p.meta.Has(separator) {
		return b.Affine(x, "", 0, name, types)
	}
	sep, err := p.meta.Int(separator)
	if err != nil || sep < 0 || sep >= maxVocab {
		p.faultf("%s: is %d, want a token", separator, sep)
		return x
	}
	return b.TokenTypes(x, name, types, int32(sep))
}

// tokenTypes is the number of rows of that table; the key has no prefix of the architecture.
func (p *params) tokenTypes() int {
	n, err := p.meta.Int("tokenizer.ggml.token_type_count")
	if err != nil || n < 1 || n > maxVocab {
		p.faultf("tokenizer.ggml.token_type_count: is %d, want 1 to %d", n, maxVocab)
		return 1
	}
	return int(n)
}

// labels is the number of a classifier's classes: one for a score.
func (p *params) labels() int {
	list, err := p.meta.Strings(p.key("classifier.output_labels"))
	if err != nil {
		return 1
	}
	return max(len(list), 1)
}
