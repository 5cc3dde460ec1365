// Package live plans what every device needs before it computes a program: an order of its nodes in few phases
// (order.go), how long each value is needed (value.go, lifetimes.go), and where in one memory it lies (place.go).
//
// It is pure and knows no device: Rules say what one can do. Memory, kernels and running are the device's own.
package live
