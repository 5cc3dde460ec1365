package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Baichuan 1 and 2, 7B. Paper: arXiv:2309.10305; compared with llama.cpp.
// Equals Llama, once converters have taken Q, K and V apart. The 13B models bias scores by distance (ALiBi) instead of
// RoPE, and are refused.
func baichuan(p *params, b *ir.Builder) {
	const largest = 40 // layers of the 13B models: files carry no other sign of them
	if p.has("block_count") && p.integer("block_count", 1, maxLayers) == largest {
		p.faultf("%s: is %d, the Baichuan 13B models, whose positions by ALiBi are not supported", p.key("block_count"), largest)
	}
	llama(p, b)
}
