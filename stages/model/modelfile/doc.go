// Package modelfile reads Modelfiles, Ollama's descriptions of models, and turns what they say of how a model runs into
// keys of its metadata, where the engine finds it.
//
// Not here: where models come from (storage/store), and what templates mean (stages/chat).
package modelfile
