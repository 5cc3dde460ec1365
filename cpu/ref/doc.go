// Package ref is the reference device: it executes any program in plain loops, one op after another, and is
// written to be read. It says what ops mean; every other device is compared with it.
//
// Activations and the KV cache are float32 (or float16 in the cache, on request). Weights stay in the file's
// format and are decoded row by row. Sums run in float64, in order, and are rounded once.
package ref
