// Package speculate guesses how an answer goes on, and how many guesses are worth their rows.
//
// Sources guess: NGram from the text itself, Predicted from a text that the client expects. Adaptive decides for one
// source, from how often its guesses were right at each level of trust, and from what rows cost on this device at
// this load (Clock). No guess changes a token, so nothing here has to be right: it has to be quick.
package speculate
