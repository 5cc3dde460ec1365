// Package null is a driver that plays a card in plain Go: memory with addresses of its own, two queues on goroutines,
// timelines, and a plain loop for each kernel of gpu/kernel. Plans run on it wherever Go runs.
//
// It is as careless as a card may be, and stricter. Between two barriers kernels may run in any order (Options.Order).
// An access beside a buffer, one that a launch did not declare, and one that nothing orders against another of the same
// memory loses the device, with an error that names the kernels. New memory begins with NaN.
package null
