// Package wire is the JSON that all dialects share: Fields decodes the members of an object into variables, with
// limits; AppendString and others encode; a Fault is the error that a client is told.
//
// A Fault's text is the same in every dialect, its shape is the dialect's. Not here: which members there are, and
// what they mean.
package wire
