package arch

import "github.com/sluice-ai/sluice/internal/ir"

// mixture is the hyper-parameters of a layer's experts.
type mixture struct {
	experts, ffn int
	route        ir.RouteArgs
	act          ir.Act
}

// hasExperts says whether the model is a mixture of experts.
func (p *params) hasExperts() bool {
	return p.has("expert_count") && p.integer("expert_count", 0, maxExperts) > 0
}

// mixture reads them. route has what a family's files do not say: how logits become weights.
func (p *params) mixture(s *shape, route ir.RouteArgs) mixture {
	m := mixture{
		experts: p.count("expert_count", maxExperts),
		ffn:     p.countOr("expert_feed_forward_length", maxFFN, s.ffn),
		route:   route,
		act:     ir.SiLU,
	}
	m.route.Used = p.count("expert_used_count", maxExperts)
	if m.route.Used > m.experts {
		p.faultf("%s: is %d, want at most %s, %d", p.key("expert_used_count"), m.route.Used,
			p.key("expert_count"), m.experts)
		m.route.Used = 1
	}
	m.route.Scale = float32(p.positiveOr("expert_weights_scale", 1))
	return m
}

// network is the experts that the router chooses for x, summed by its weights.
func (m *mixture) network(b *ir.Builder, x ir.Value) ir.Value {
	weights := b.Route(b.Linear(x, "ffn_gate_inp", m.experts), "", m.route)
	return b.Experts(x, weights, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", m.ffn, m.route.Used, m.act)
}

// feed is the feed-forward network of families whose models may be dense or have experts.
func (p *params) feed(s *shape, route ir.RouteArgs) func(b *ir.Builder, x ir.Value) ir.Value {
	if !p.hasExperts() {
		return s.swiglu
	}
	m := p.mixture(s, route)
	return m.network
}
