// Package plan turns a bound program into the launches of a GPU's kernels, as values. It is pure: it knows no device
// and no driver, only a kernel.Table.
//
// Fuse decides which nodes share a kernel. New plans all segments once: launches, their order, and where values lie in
// scratch memory. Plan.Stream is the launches of one shape of step, with their addresses, and with a barrier wherever
// one of them needs it (stream.go). Barriers between the dispatches of one kernel are its driver's.
package plan
