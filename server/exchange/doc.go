// Package exchange is the life of one HTTP request and its answer in any API: how long the client may keep the server
// waiting, whether it is still connected, and the line that is logged at the end.
//
// It knows fasthttp's rules so that handlers need not: the request's context is recycled while a stream is still
// written, a panic in a handler or a writer kills the process, one write timeout spans a whole stream. Not here: what
// requests and answers mean.
package exchange
