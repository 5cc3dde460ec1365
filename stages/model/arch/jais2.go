package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Jais 2. Compared with llama.cpp.
// Differs from StarCoder 2: the network's activation is the square of ReLU.
func jais2(p *params, b *ir.Builder) { starcoderBy(p, b, ir.ReLU2) }
