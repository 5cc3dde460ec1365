// Package ollama speaks the part of Ollama's API that tells which models there are. It does not generate yet.
package ollama
