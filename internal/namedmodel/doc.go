// Package namedmodel finds and opens the models that people name: a GGUF file, a folder, a model of the store, one that
// another program keeps, or the embedded one. A folder is opened as the GGUF file that it becomes; how it becomes that
// is here, too. Nothing is run, and nothing is told to anybody but by errors.
package namedmodel
