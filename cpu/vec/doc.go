// Package vec holds the CPU device's arithmetic on rows of float32, all but the matrix products with weights.
//
// Each routine is written twice: as a Go twin (twin.go), which defines the result bit by bit, and as assembly that
// repeats it operation by operation (law Twin), which cpu/gen/vec writes for every ISA. Elements are independent, or
// summed in one shape: 16 lanes, then a fixed tree. So no result depends on the instruction set, or on what else is
// computed beside it.
package vec

//go:generate go run -C ../gen/vec . -o ../../vec
