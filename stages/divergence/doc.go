// Package divergence compares what two runs of a model predict for the same text, position by position: their
// surprise, the Kullback-Leibler divergence between them, and whether their likeliest tokens are the same.
// Perplexity alone hides what becomes of the few positions that matter. Memory does not grow with the text.
package divergence
