// Package answer is what every dialect does: it finds the model, opens a stream of the engine for each choice, reads
// them as they come, and gives up when the client has gone.
//
// A dialect is a value: paths with handlers, and how a fault is spelled. Its handlers decode a request into an Order
// and hand it to Service.Answer with an Encoder, which spells the parts of the answer.
// Texts whose vectors are wanted are a Reading, which goes to Service.Vectors. Not here: how anything is spelled.
package answer
