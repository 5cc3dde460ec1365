// Package predict guesses which experts a layer will choose before its router does, so that a drive that has nothing
// else to do can bring them.
//
// It knows what the layer chose for the same tokens the last times, and, where the device says so, what the layer's
// router makes of the residual stream that the layer before it takes in (early) or leaves (late). How much each of
// them tells it learns from what is chosen, for each layer, among the experts that were not there: about others nobody
// asks. The engine uses it, and so does the virtual replay of a trace. The same calls give the same guesses.
package predict
