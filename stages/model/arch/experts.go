package arch

import "github.com/sluice-ai/sluice/internal/ir"

// mixture is the hyper-parameters of a layer's experts.
type mixture struct {
	experts, ffn int
	shared       int // features of the network that all rows share; 0: there is none
	bias         string
	bareBias     bool // whose name may be complete
	before       bool // weights multiply what goes into experts, not what comes out
	ungated      bool // networks activate what they multiply, and have no gate
	route        ir.RouteArgs
	act          ir.Act

	limit, sharedLimit float32 // of an act that has one: of experts, of the network that all rows share; 0: none
}

// hasExperts says whether the model is a mixture of experts.
func (p *params) hasExperts() bool {
	return p.has("expert_count") && p.integer("expert_count", 0, maxExperts) > 0
}

// mixture reads a mixture's hyper-parameters. route says what a family's files do not: how logits become weights.
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
func (m *mixture) network(b *ir.Builder, x ir.Value) ir.Value { return m.chosen(b, x, m.weigh(b, x)) }

// weigh is the weight of each expert for x, by the router.
func (m *mixture) weigh(b *ir.Builder, x ir.Value) ir.Value {
	route := b.Route
	if m.bareBias && m.bias != "" && !b.Has(m.bias+".bias") {
		route = b.RouteBy
	}
	return route(b.Linear(x, "ffn_gate_inp", m.experts), m.bias, m.route)
}

// chosen is the sum of x's experts by their weights.
func (m *mixture) chosen(b *ir.Builder, x, weights ir.Value) ir.Value {
	if m.ungated {
		return b.ExpertsUngated(x, weights, "ffn_up_exps", "ffn_down_exps", m.ffn, m.route.Used, m.act)
	}
	if m.act.Limited() {
		return b.ExpertsWithin(x, weights, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", m.ffn, m.route.Used, m.act,
			m.limit)
	}
	record := b.Experts
	if m.before {
		record = b.ExpertsBefore
	}
	return record(x, weights, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", m.ffn, m.route.Used, m.act)
}

// biasedMixture is mixture for families whose files say how logits become weights: route holds where a file does
// not. The router has a bias, and the layer a shared network, if the file has their tensors.
func (p *params) biasedMixture(s *shape, route ir.RouteArgs) mixture {
	const softmax, sigmoid = 1, 2 // llama.cpp's numbers
	if p.has("expert_gating_func") {
		switch n := p.integer("expert_gating_func", softmax, sigmoid); n {
		case softmax:
			route.Scoring = ir.SoftmaxAll
		case sigmoid:
			route.Scoring = ir.SigmoidEach
		}
	}
	if p.has("expert_weights_norm") {
		route.Normalise = p.flag("expert_weights_norm")
	}
	if groups := p.countOr("expert_group_count", maxExperts, 1); groups > 1 {
		route.Groups, route.GroupsUsed = groups, p.count("expert_group_used_count", groups)
		route.GroupBest = 2
		if route.Scoring == ir.SoftmaxAll { // as in DeepSeek V2
			route.GroupBest = 1
		}
	}
	m := p.mixture(s, route)
	if m.route.Groups > 0 && m.experts%m.route.Groups != 0 {
		p.faultf("%s: is %d, want a divisor of %s, %d", p.key("expert_group_count"), m.route.Groups,
			p.key("expert_count"), m.experts)
		m.route.Groups, m.route.GroupsUsed, m.route.GroupBest = 0, 0, 0
	}
	m.bias = "exp_probs_b"
	if p.has("expert_shared_count") {
		m.shared = p.countOr("expert_shared_feed_forward_length", maxFFN,
			p.integer("expert_shared_count", 0, maxExperts)*m.ffn)
	}
	return m
}

// besideShared is the sum of x's experts and of the network that all rows share, if there is one. A layer may lack
// the bias of the choice.
func (m *mixture) besideShared(b *ir.Builder, x ir.Value) ir.Value {
	own := *m
	if name := m.bias; !b.Has(name+".bias") && !(m.bareBias && b.Has(name)) {
		own.bias = ""
	}
	if m.shared == 0 {
		return own.network(b, x)
	}
	shared := m.all(b, x)
	return b.Add(own.network(b, x), shared)
}

// all is the network that all rows share.
func (m *mixture) all(b *ir.Builder, x ir.Value) ir.Value {
	var h ir.Value
	switch {
	case m.ungated:
		h = b.Act(m.act, b.Linear(x, "ffn_up_shexp", m.shared))
	case m.act == ir.Clamped:
		h = b.GLU(m.act, b.Linear(x, "ffn_gate_shexp", m.shared), b.Linear(x, "ffn_up_shexp", m.shared))
	default:
		h = b.GLUWithin(m.act, b.Linear(x, "ffn_gate_shexp", m.shared), b.Linear(x, "ffn_up_shexp", m.shared), m.sharedLimit)
	}
	return b.Linear(h, "ffn_down_shexp", b.Width(x))
}

// feed is the feed-forward network of families whose models may be dense or have experts.
func (p *params) feed(s *shape, route ir.RouteArgs) func(b *ir.Builder, x ir.Value) ir.Value {
	if !p.hasExperts() {
		return s.swiglu
	}
	m := p.mixture(s, route)
	return m.network
}
