// Package server puts HTTP in front of models: listening, routing, keys, limits, metrics, and stopping in order.
//
// The APIs that are spoken are in a folder for each (server/openai, server/anthropic, …) and a list of them
// (dialects.go). What all of them do is in server/answer and server/wire, what their requests have in common in
// server/decode, the care for one request and its connection in server/exchange, how requests are framed in
// server/framing, who gets what there is a number of in server/quota. Not here: anything that decides how answers are
// computed.
package server
