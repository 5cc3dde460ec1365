// Package text has the commands that turn texts into what a model reads and back, without running it: tokenize,
// detokenize, template, grammar, parse.
package text
