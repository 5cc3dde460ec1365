package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Baichuan 1 and 2. Paper: arXiv:2309.10305; compared with llama.cpp.
// The 7B models equal Llama, once converters have taken Q, K and V apart, the 13B models Refact.
func baichuan(p *params, b *ir.Builder) {
	const largest = 40 // layers of the 13B models: files carry no other sign of them
	if p.has("block_count") && p.integer("block_count", 1, maxLayers) == largest {
		refact(p, b)
		return
	}
	llama(p, b)
}
