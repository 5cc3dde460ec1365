// Package openai says how OpenAI spells things: chat completions, completions, embeddings, reranking
// (which is Jina's), models, errors.
//
// Requests are decoded by *request.go into an answer.Order, with what other dialects read too (server/decode); chat.go,
// completions.go and encode.go spell the parts of an answer; embeddings.go and rerank.go do both for vectors.go. The
// extensions are llama.cpp's (see docs/api/openai.md). Not here: what happens between the two (server/answer), JSON
// as such (server/wire), connections and their clients (server/exchange).
package openai
