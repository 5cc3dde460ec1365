// Package openai speaks OpenAI's API: chat completions, completions, responses, embeddings, reranking (which is
// Jina's), models, errors.
//
// The files named *request.go decode requests into an answer.Order, with what other dialects read too
// (server/decode); chat.go, completions.go, responses.go and encode.go write the parts and events of an answer;
// responsesinput.go reads the items of a response's input, conversations.go keeps earlier responses; embeddings.go and
// rerank.go do both for vectors.go. The extensions are llama.cpp's (see docs/api/openai.md). Not here: what happens
// between the two (server/answer), JSON as such (server/wire), connections and their clients (server/exchange).
package openai
