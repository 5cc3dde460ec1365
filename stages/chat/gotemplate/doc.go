// Package gotemplate writes Ollama's chat templates, which are in the language of Go's text/template, as Jinja, as
// model files have them: there is one way to render prompts, with its limits, and one to learn how a model calls tools.
//
// Go's own parser reads them; what it has read is written by a walk (write.go, expression.go), between the parts that
// Ollama's program has around a template (frame.go). What cannot be written is an error that names it.
package gotemplate
