package openai

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
)

// api answers requests of OpenAI's API.
type api struct {
	*answer.Service
	created int64 // of every model, in Unix seconds: the server's start
	past    conversations
}

// Dialect is OpenAI's API for the models of a service.
func Dialect(s *answer.Service) answer.Dialect {
	a := &api{Service: s, created: time.Now().Unix()}
	const get, post = fasthttp.MethodGet, fasthttp.MethodPost
	return answer.Dialect{
		Name: "OpenAI's API", Fault: appendFault,
		Routes: append([]answer.Route{
			{Method: post, Path: "/v1/chat/completions", Help: "an answer to a conversation", Handle: a.chat},
			{Method: post, Path: responsesPath, Help: "the same, in typed items", Handle: a.respond},
			{Method: post, Path: "/v1/responses/input_tokens", Handle: a.countResponse},
			{Method: fasthttp.MethodDelete, Also: get, Path: responsesPath + "/", Name: responsesPath + "/{id}",
				Handle: a.stored},
			{Method: post, Path: "/v1/completions", Help: "the continuation of a text", Handle: a.complete},
			{Method: post, Path: "/v1/embeddings", Help: "the vectors of texts", Handle: a.vectors(answer.Embed, decodeEmbeddings)},
			{Method: post, Path: "/v1/rerank", Help: "how well documents answer a query", Handle: a.vectors(answer.Rank, decodeRerank)},
			{Method: post, Path: "/v1/load_lora_adapter", Private: true, Handle: a.loadAdapter},
			{Method: post, Path: "/v1/unload_lora_adapter", Private: true, Handle: a.unloadAdapter},
			{Method: get, Path: answer.ModelsPath, Help: "the model", Handle: a.list},
			{Method: get, Path: answer.ModelsPath + "/", Name: "/v1/models/{name}", Handle: a.describe},
			// As llama-server has them too: base URLs often lack /v1.
			{Method: post, Path: "/chat/completions", Name: "/v1/chat/completions", Handle: a.chat},
			{Method: post, Path: "/responses", Name: "/v1/responses", Handle: a.respond},
			{Method: post, Path: "/rerank", Name: "/v1/rerank", Handle: a.vectors(answer.Rank, decodeRerank)},
			{Method: post, Path: "/reranking", Name: "/v1/rerank", Handle: a.vectors(answer.Rank, decodeRerank)},
			{Method: post, Path: "/v1/reranking", Name: "/v1/rerank", Handle: a.vectors(answer.Rank, decodeRerank)},
			{Method: get, Path: "/models", Name: answer.ModelsPath, Handle: a.list},
		}, a.imageRoutes()...),
	}
}

// appendFault appends {"error": {…}}.
func appendFault(dst []byte, f *wire.Fault) []byte {
	kind := "invalid_request_error"
	if f.Ours() {
		kind = "server_error"
	}
	dst = wire.AppendString(append(dst, `{"error":{"message":`...), f.Text)
	dst = wire.AppendString(append(dst, `,"type":`...), kind)
	dst = appendOrNull(append(dst, `,"param":`...), f.Param)
	dst = appendOrNull(append(dst, `,"code":`...), f.Code)
	return append(dst, "}}"...)
}

func appendOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return wire.AppendString(dst, s)
}
