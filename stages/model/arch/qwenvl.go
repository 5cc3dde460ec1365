package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Qwen 2 VL and 2.5 VL, text. Papers: arXiv:2409.12191, arXiv:2502.13923; checked against transformers,
// modeling_qwen2_5_vl.py. Differs from Qwen 2: RoPE has sections, whose pairs turn by time, by lines and by columns. A
// text's positions are the same in all of them.
func qwen2vl(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	s.qwen2(b, p.sections(p.rope(&s, halves, 10000), oneAfterAnother))
}

// oneAfterAnother has the pairs of time come first, then those of lines and of columns.
func oneAfterAnother(pair int, n []int) uint8 {
	switch {
	case pair < n[0]:
		return 0
	case pair < n[0]+n[1]:
		return 1
	}
	return 2
}

// maybeSections is the RoPE of families of which some models see: these have sections, and turn halves of heads.
func (p *params) maybeSections(s *shape, pairs pairing) rope {
	if !p.has("rope.dimension_sections") {
		return p.rope(s, pairs, 10000)
	}
	return p.sections(p.rope(s, halves, 10000), oneAfterAnother)
}

// Qwen 3 VL, text. Paper: arXiv:2511.21631; checked against transformers, modeling_qwen3_vl.py. Differs from Qwen 3:
// RoPE has sections, which lie interleaved. What pictures add after the first layers is no part of the program.
func qwen3vl(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	p.qwen3(b, &s, p.sections(p.rope(&s, halves, 10000), interleaved))
}

// Qwen 3 VL with experts. Differs from Qwen 3 VL as Qwen 3 with experts from Qwen 3.
func qwen3vlmoe(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	p.qwen3moe(b, &s, p.sections(p.rope(&s, halves, 10000), interleaved))
}

// interleaved has time, lines and columns take turns, as long as lines and columns have pairs left.
func interleaved(pair int, n []int) uint8 {
	if axis := pair % 3; axis > 0 && pair < 3*n[axis] {
		return uint8(axis)
	}
	return 0
}

// sections has pairs turn by several axes: axis says which one a pair turns by, given how many pairs each has.
func (p *params) sections(r rope, axis func(pair int, n []int) uint8) rope {
	const name, axes = "rope.dimension_sections", 3
	list, err := p.meta.Ints(p.key(name))
	switch {
	case err != nil:
		p.faults = append(p.faults, err)
		return r
	case len(list) < axes || len(list) > axes && list[axes] != 0:
		p.faultf("%s: is %v, want pairs of %d axes", p.key(name), list, axes)
		return r
	}
	n, sum := make([]int, axes), 0
	for i := range n {
		n[i] = int(min(max(list[i], 0), maxHeadDim))
		sum += n[i]
	}
	if sum != len(r.args.Freq) {
		p.faultf("%s: has %d pairs, want %d", p.key(name), sum, len(r.args.Freq))
		return r
	}
	for pair := range r.args.Freq {
		r.args.Axes = append(r.args.Axes, axis(pair, n))
	}
	return r
}
