// Package kernel is the vocabulary of a GPU's kernels: one struct of arguments for each, with the memory that a launch
// reads and writes, and the layouts of rows and matrices that all of them share.
//
// Arguments are numbers: addresses, strides and counts. A field of type uint64 is an address unless its comment says
// otherwise, and "of uint32" says what lies there. How a kernel is compiled and dispatched is its driver's business,
// what is launched when is gpu/plan's. gpu/null has a plain loop for each kernel.
package kernel
