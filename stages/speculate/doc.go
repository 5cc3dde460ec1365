// Package speculate guesses how an answer goes on, and how many guesses are worth their rows.
//
// Sources guess: NGram from the text itself, Predicted from a text that the client expects. A draft model does so too,
// but takes its time (Drafts). Adaptive decides for one sequence who guesses, and how many tokens, from how often
// guesses were right at each level of trust, and from what rows cost on this device at this load (Clock). No guess
// changes a token, so nothing here has to be right: it has to be quick.
package speculate
