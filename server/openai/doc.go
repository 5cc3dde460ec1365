// Package openai speaks OpenAI's API: chat completions, completions, models.
//
// A handler decodes, opens streams of the engine and writes what comes; it decides nothing. fields.go and its
// users read requests, append.go writes answers, choice.go follows one stream. The extensions are llama.cpp's
// (see docs/api.md). Not here: connections and their clients (server/exchange), sampling, templates.
package openai
