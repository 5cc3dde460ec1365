// Package reply turns the tokens of an answer into what a client reads: bytes, thoughts, calls, and the stop string
// that ends it. Not here: how an API spells them (server), what a model's marks are (stages/tools).
package reply
