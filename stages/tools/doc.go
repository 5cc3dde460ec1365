// Package tools reads what models write when they call functions, and when they think, out of the text of an answer.
//
// A Syntax is what a model's own chat template shows of its way to write (syntax.go, families.go); a Parser follows one
// answer as it comes, however it is cut, and gives typed parts: text, thoughts, calls and the arguments of calls as
// they grow, always as JSON. What only looks like a call stays text. Not here: how an API spells parts (server), how
// conversations with calls become prompts (stages/chat).
package tools
