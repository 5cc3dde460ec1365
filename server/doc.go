// Package server puts HTTP in front of an engine: listening, routing, keys, limits, metrics, and stopping in order.
//
// What an API's requests and answers look like is in a folder for each (server/openai); the care for connections
// is in server/exchange. Not here: anything that decides how answers are computed.
package server
