// Package ref is the reference device: it executes any program one op after another, each by the plain loop that
// internal/ir has beside the op's rule. Every other device is compared with it.
//
// What stands here is memory: activations are float32, weights stay in the file's format and are decoded row by row,
// caches are rounded to their type and kept as float32.
package ref
