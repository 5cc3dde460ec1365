// Package llamacpp speaks what clients use of the API that llama.cpp's server has beside OpenAI's: completions, gaps
// filled in, tokens, prompts, properties.
//
// A request becomes an answer.Order (request.go), and the parts of an answer objects again (encode.go); texts.go has
// what is answered without computing anything. Not here: what all dialects do with an order (server/answer), what their
// requests have in common (server/decode), and /v1 (server/openai).
package llamacpp
