// Package kernels multiplies weight matrices by activations on the CPU.
//
// Weights are repacked once into tiles of 16 output rows (layout.go), so that vector lanes are rows and no sum
// runs across a register. The arithmetic is fixed to the last bit (twin.go, law Twin): the assembly of every
// instruction set repeats the plain Go in it, and a row's result depends neither on the other rows nor on how the
// work was split. No goroutines here: workers call MatMul for disjoint ranges of tiles.
package kernels

//go:generate go run -C ../gen/kernels . -o ../../kernels
