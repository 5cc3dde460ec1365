// Package answer is the part of a request that all dialects share: it finds the model, opens a stream of the engine
// for each choice, reads the streams, and gives up when the client has gone.
//
// A dialect is a value: paths with handlers, and a format of faults. Its handlers decode a request into an Order and
// pass it to Service.Answer with an Encoder, which writes the parts of the answer. Requests for vectors are a
// Reading, which goes to Service.Vectors. Not here: the format of anything.
package answer
