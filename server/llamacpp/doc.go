// Package llamacpp speaks the part of llama-server's own API that clients use beside OpenAI's: completions, infill,
// tokens, prompts, properties.
//
// A request becomes an answer.Order (request.go), and the parts of an answer objects again (encode.go); texts.go
// answers what needs no computation. Not here: what all dialects do with an order (server/answer), what their
// requests have in common (server/decode), and /v1 (server/openai).
package llamacpp
