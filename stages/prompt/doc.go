// Package prompt makes the tokens that a model reads of what a request says: a conversation in the model's own
// template, a text, or tokens as they are.
//
// A Writer knows the model (writer.go) and how its prompts have pictures (picture.go), a Prompt is the result, with all
// that its answer is read with (prompt.go), and Room is how long prompt and answer may be (room.go). Not here: what
// messages are (stages/chat), tokenizers (stages/token), and what becomes of pictures (stages/picture).
package prompt
