// Package wire is what all dialects share of the way to and from their clients: the members of a JSON object are read
// into variables with limits (Fields), strings are appended as JSON, and a Fault is what a client is told.
//
// A Fault's text is the same in every dialect, its shape is the dialect's. Not here: which members there are, and what
// they mean.
package wire
