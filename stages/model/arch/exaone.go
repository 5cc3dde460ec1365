package arch

import "github.com/sluice-ai/sluice/internal/ir"

// EXAONE 3 and 3.5. Paper: arXiv:2408.03541; compared with llama.cpp.
// Differs from Llama: RoPE turns halves.
func exaone(p *params, b *ir.Builder) { llamaBy(p, b, halves) }
