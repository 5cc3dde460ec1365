package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Kimi Linear. Paper: arXiv:2510.26692; compared with llama.cpp.
// Differs from DeepSeek V3: latent attention is without RoPE, and most layers have Kimi Delta Attention instead, a
// gated delta network whose keys forget feature by feature; Q, K and V are convolved each on its own.
func kimiLinear(p *params, b *ir.Builder) {
	s, attends := p.hybrid("attention.layer_norm_rms_epsilon")
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach, Normalise: true})
	m.route.Normalise = true
	l := p.latent(&s)
	l.rope = rope{}
	lead, kernel := p.leadingDense(), p.integer("ssm.conv_kernel", 2, maxHeadDim)
	head := p.count("kda.head_dim", maxHeadDim)
	a := ir.ScanArgs{Heads: s.heads, Groups: s.heads, KDim: head, VDim: head, ByKey: true,
		Scale: float32(1 / math.Sqrt(float64(head)))}

	x := b.Embed("token_embd", s.vocab, s.width)
	for i := range s.layers {
		b.Layer(i)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		if attends(i) {
			x = b.Add(x, l.attend(&s, b, n))
		} else {
			x = b.Add(x, s.kimiDelta(b, n, kernel, a))
		}
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", s.eps)
		if i < lead {
			x = b.Add(x, s.swiglu(b, n))
		} else {
			x = b.Add(x, m.besideShared(b, n))
		}
	}
	s.head(b, x)
}

// kimiDelta is Kimi Delta Attention. Decays and the gate come by two matrices each, with a head's features between.
func (s *shape) kimiDelta(b *ir.Builder, x ir.Value, kernel int, a ir.ScanArgs) ir.Value {
	const eps = 1e-6 // of the norms of q and k: files do not carry it
	inner := a.Heads * a.KDim
	convolved := func(name string) ir.Value {
		return b.Act(ir.SiLU, b.CausalConv(b.Linear(x, "attn_"+name, inner), "ssm_conv1d_"+name, kernel))
	}
	q, k := b.L2Norm(convolved("q"), a.KDim, eps), b.L2Norm(convolved("k"), a.KDim, eps)
	delta := b.Linear(b.Linear(x, "ssm_f_a", a.KDim), "ssm_f_b", inner)
	beta := b.Act(ir.Sigmoid, b.Linear(x, "ssm_beta", a.Heads))
	y := b.DeltaRule(q, k, convolved("v"), delta, beta, "ssm_a", "ssm_dt.bias", a)
	gate := b.Linear(b.Linear(x, "ssm_g_a", a.KDim), "ssm_g_b", inner)
	return b.Linear(b.GLU(ir.Sigmoid, gate, b.HeadNorm(y, "ssm_norm", a.KDim, s.eps)), "attn_output", s.width)
}
