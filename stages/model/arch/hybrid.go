package arch

import "github.com/sluice-ai/sluice/internal/ir"

// kvHeadsByLayer reads how many heads of K and V the layers that attend have, which must be the same number in all
// of them; a layer with 0 does not attend. Files of hybrids have a number for each layer, or one for all.
func (p *params) kvHeadsByLayer(layers int) (heads int, attends func(layer int) bool) {
	const name = "attention.head_count_kv"
	list, err := p.meta.Ints(p.key(name))
	if err != nil {
		return p.count(name, maxHeads), func(int) bool { return true }
	}
	if len(list) < layers {
		p.faultf("%s: has %d layers, want %d", p.key(name), len(list), layers)
		return 1, func(int) bool { return false }
	}
	for l, n := range list[:layers] {
		switch {
		case n < 0 || n > maxHeads:
			p.faultf("%s: is %d for layer %d, want 0 to %d", p.key(name), n, l, maxHeads)
		case n > 0 && heads > 0 && int(n) != heads:
			p.faultf("%s: is %d for layer %d, want 0 or %d, as before it", p.key(name), n, l, heads)
		case n > 0:
			heads = int(n)
		}
	}
	return max(heads, 1), func(l int) bool { return list[l] > 0 }
}

// hybrid is decoder for families of which some layers do not attend.
func (p *params) hybrid(eps string) (s shape, attends func(layer int) bool) {
	s = p.stream(eps)
	s.ffn = p.count("feed_forward_length", maxFFN)
	s.kvHeads, attends = p.kvHeadsByLayer(s.layers)
	p.heads(&s)
	return s, attends
}

// mixed is decoder for families whose layers all have experts, and whose files have no other feed_forward_length.
func (p *params) mixed(eps string) shape {
	s := p.stream(eps)
	s.ffn = p.count("expert_feed_forward_length", maxFFN)
	s.kvHeads = p.countOr("attention.head_count_kv", maxHeads, s.heads)
	p.heads(&s)
	return s
}

// states is the sizes of a recurrent mixer.
type states struct {
	kernel int    // positions of its convolution
	inner  int    // features of all heads together
	gate   ir.Act // of what heads read of their states
	scan   ir.ScanArgs
}

// groups reads how many groups of heads share keys: none is one.
func (p *params) groups() int {
	const name = "ssm.group_count"
	if !p.has(name) {
		return 1
	}
	return max(1, p.integer(name, 0, maxHeads))
}

// states reads the sizes of a recurrent mixer.
func (p *params) states() states {
	s := states{
		kernel: p.integer("ssm.conv_kernel", 2, maxHeadDim),
		inner:  p.count("ssm.inner_size", maxWidth),
		gate:   ir.SiLU,
		scan: ir.ScanArgs{
			Heads:  p.count("ssm.time_step_rank", maxHeads),
			Groups: p.groups(),
			KDim:   p.count("ssm.state_size", maxHeadDim),
			Scale:  1,
		},
	}
	if s.inner%s.scan.Heads != 0 || s.scan.Heads%s.scan.Groups != 0 {
		p.faultf("%s: is %d, want a divisor of %s, %d, and a multiple of %s, %d", p.key("ssm.time_step_rank"),
			s.scan.Heads, p.key("ssm.inner_size"), s.inner, p.key("ssm.group_count"), s.scan.Groups)
		s.inner, s.scan.Heads, s.scan.Groups = 1, 1, 1
	}
	s.scan.VDim = s.inner / s.scan.Heads
	return s
}
