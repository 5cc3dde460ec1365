// Package models finds and opens the model that -m names: a file, a folder of safetensors, a model of the store, or the
// embedded one. It also plans the conversion and quantisation of models. It runs nothing.
package models
