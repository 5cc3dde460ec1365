// Package text has the commands that convert between texts and what a model reads, without running it: tokenize,
// detokenize, template, grammar, parse.
package text
