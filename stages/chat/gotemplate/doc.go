// Package gotemplate translates Ollama's chat templates, which are in the language of Go's text/template, to Jinja,
// which model files have. So there is one renderer of prompts, with its limits, and one way to learn how a model
// calls tools.
//
// Go's own parser reads a template, and a walk over its tree writes it (write.go, expression.go), between the parts
// that Ollama's program has around a template (frame.go). What cannot be translated is an error that names it.
package gotemplate
