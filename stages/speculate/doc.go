// Package speculate guesses how an answer goes on, and how many guesses are worth their rows.
//
// Sources guess: NGram from the text itself, Predicted from a text that the client expects. Adaptive is one source with
// what was learned of it: how often it is right, by how sure it was, and what rows cost on this device at this load
// (Clock). No guess changes a token, so that nothing here has to be right: it has to be quick.
package speculate
