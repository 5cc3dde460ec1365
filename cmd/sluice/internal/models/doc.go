// Package models finds and opens what -m names: a file, a folder of safetensors, a model of the store, or the embedded
// one; and says what file a folder or a model becomes when it is converted or quantised. It runs nothing.
package models
