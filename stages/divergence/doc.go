// Package divergence compares what two runs of a model predict of the same text, position by position: their surprise,
// the divergence of Kullback and Leibler between them, and whether their first tokens are the same. Perplexity alone
// hides what becomes of the few positions that matter. Memory does not grow with the text.
package divergence
