// Package null is a driver that emulates a card in plain Go: memory with addresses of its own, two queues on
// goroutines, timelines, and a plain loop for each kernel of gpu/kernel. Plans run on it wherever Go runs.
//
// It does all that a card may do, and finds faults that a card would hide. Between two barriers kernels run in any
// order (Options.Order). The device is lost, with an error that names the kernels, by an access outside of buffers, by
// one that the launch did not declare, and by two accesses of the same memory, one of them a write, without an order.
// New memory begins with NaN.
package null
