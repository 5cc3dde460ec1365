// Package ollama speaks Ollama's API: conversations, completions, vectors, and the list of models.
//
// A request becomes an answer.Order (request.go, chat.go, generate.go), and the parts of an answer become lines of
// JSON (encode.go); embed.go serves vectors and models.go the models. Not here: what all dialects do with an order
// (server/answer), what their requests have in common (server/decode).
package ollama
