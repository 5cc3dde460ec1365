// Package server puts HTTP in front of models: listening, routing, keys, limits, metrics, and an orderly shutdown.
//
// Each API has a folder (server/openai, server/anthropic, …) and an entry in dialects.go. server/answer and
// server/wire hold the work that all APIs share, server/decode the fields that their requests share, server/exchange
// the life of one request and its connection, server/framing the checks of how requests are framed, server/quota the
// division of places and memory among clients. Not here: anything that decides how answers are computed.
package server
