// Package ollama speaks Ollama's API: answers to conversations and texts, vectors, and which models there are.
//
// A request becomes an answer.Order (request.go, chat.go, generate.go), and the parts of an answer lines of JSON
// (encode.go); embed.go and models.go are all that vectors and models need. Not here: what all dialects do with an
// order (server/answer), what their requests have in common (server/decode).
package ollama
