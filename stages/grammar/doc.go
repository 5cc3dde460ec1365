// Package grammar says which tokens may follow, so that what a model writes is in a language: a regular expression, a
// GBNF grammar, or a JSON Schema (stages/grammar/schema).
//
// A Grammar is rules over characters (grammar.go; gbnf.go reads the text form). Compile makes a Program of it: a
// pushdown automaton over bytes whose states come into being when they are first met (program.go, state.go, lexeme.go).
// A Matcher is a place in a text (matcher.go), a Masker finds the tokens that may follow there, from a Trie of the
// vocabulary (trie.go, masker.go).
package grammar
