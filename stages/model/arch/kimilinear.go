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
	lead, d := p.leadingDense(), p.kimiDelta(&s)

	x := b.Embed("token_embd", s.vocab, s.width)
	for i := range s.layers {
		b.Layer(i)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		if attends(i) {
			x = b.Add(x, l.attend(&s, b, n))
		} else {
			x = b.Add(x, d.attend(&s, b, n))
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

// kimiDelta is Kimi Delta Attention. Decays and the gate come by two matrices each, with a head's features between, or
// by one each.
type kimiDelta struct {
	kernel   int     // positions of the convolutions
	eps      float32 // of the norms of q and k
	bound    float32 // the logarithm of a decay is so much, negative, times a sigmoid; 0: it is a softplus times A
	negative bool    // factors within the sigmoid are −A, as those of the softplus are
	scan     ir.ScanArgs
}

func (p *params) kimiDelta(s *shape) kimiDelta {
	head := p.count("kda.head_dim", maxHeadDim)
	const eps = 1e-6 // files do not carry it
	return kimiDelta{kernel: p.integer("ssm.conv_kernel", 2, maxHeadDim), eps: eps, scan: ir.ScanArgs{Heads: s.heads,
		Groups: s.heads, KDim: head, VDim: head, ByKey: true, Scale: float32(1 / math.Sqrt(float64(head)))}}
}

// bounded reads the bound of decays.
func (d *kimiDelta) bounded(p *params) {
	const name = "kda.gate_lower_bound"
	x, err := p.meta.Float(p.key(name))
	if err != nil {
		p.faults = append(p.faults, err)
	} else if !(x < 0) || x < -math.MaxFloat32 {
		p.faultf("%s: is %v, want a number below 0", p.key(name), x)
	}
	if d.bound = float32(x); err != nil || !(x < 0) {
		d.bound = -1
	}
	if p.has("kda.safe_gate") && !p.flag("kda.safe_gate") {
		p.faultf("%s: is false, and such gates are not supported", p.key("kda.safe_gate"))
	}
}

func (d *kimiDelta) attend(s *shape, b *ir.Builder, x ir.Value) ir.Value {
	a := d.scan
	inner := a.Heads * a.KDim
	convolved := func(name string) ir.Value {
		return b.Act(ir.SiLU, b.CausalConv(b.Linear(x, "attn_"+name, inner), "ssm_conv1d_"+name, d.kernel))
	}
	low := func(name, first string) ir.Value {
		if b.Has(name + "_b.weight") {
			return b.Linear(b.Linear(x, name+"_a", a.KDim), name+"_b", inner)
		}
		return b.Linear(x, first, inner)
	}
	q, k := b.L2Norm(convolved("q"), a.KDim, d.eps), b.L2Norm(convolved("k"), a.KDim, d.eps)
	delta, beta := low("ssm_f", "ssm_f_a"), b.Act(ir.Sigmoid, b.Linear(x, "ssm_beta", a.Heads))
	var y ir.Value
	if d.bound == 0 {
		y = b.DeltaRule(q, k, convolved("v"), delta, beta, "ssm_a", "ssm_dt.bias", a)
	} else {
		y = d.boundedRule(b, q, k, convolved("v"), delta, beta)
	}
	first := "ssm_g_a"
	if b.Has("ssm_g.weight") {
		first = "ssm_g"
	}
	return b.Linear(b.GLU(ir.Sigmoid, low("ssm_g", first), b.HeadNorm(y, "ssm_norm", a.KDim, s.eps)), "attn_output", s.width)
}

// boundedRule is a delta rule whose decays have a bound: a state that decayed by e^g unlearns what it knew of k, and
// learns v, at the rate β, which is a WKV that unlearns k·e^g of the state before.
func (d *kimiDelta) boundedRule(b *ir.Builder, q, k, v, delta, beta ir.Value) ir.Value {
	a := d.scan
	a.ByKey = false
	g := b.AffineHeads(b.AffineTable(delta, "", "ssm_dt.bias", 1), "ssm_a", a.Heads)
	if d.negative {
		g = b.Scale(g, -1)
	}
	g = b.Scale(b.Act(ir.Sigmoid, g), d.bound)
	learnt := b.Mul(k, beta)
	return b.WKV(q, learnt, v, g, a, b.Mul(k, b.Act(ir.Exp, g)), b.Scale(learnt, -1))
}
