// Package predict guesses which experts a layer will choose before its router does, so that an idle drive can read
// them.
//
// It remembers what the layer chose for the same tokens the last times. Where the device says so, it also knows the
// scores that the layer's router gives to the residual stream as the layer before it takes it in (early) or leaves
// it (late). How much each of these tells is learned from what is chosen, for each layer, among the experts that
// were not there: others need no guess. The engine uses it, and so does the virtual replay of a trace. The same
// calls give the same guesses.
package predict
