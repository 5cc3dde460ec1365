// Package mini embeds the small demonstration model that commands use when no model is named.
//
// It is a Qwen3-shaped model of 26.2 million parameters trained by this project from scratch. It answers
// a handful of question kinds and exists so that the first command a person types prints text.
package mini

import _ "embed"

// Name is how the model presents itself where a file name would stand.
const Name = "mini-Q4_K_M (embedded)"

// GGUF is the model file, byte for byte. It must not be written to.
//
//go:embed mini-Q4_K_M.gguf
var GGUF []byte
