// Package kernel is the vocabulary of a GPU's kernels: one struct of arguments for each, with the memory that a launch
// reads and writes, and the layouts of rows and matrices that all of them share.
//
// Arguments are numbers: addresses, strides and counts. How a kernel is compiled and dispatched is its driver's
// business, what is launched when is gpu/plan's. gpu/null has a plain loop for each kernel.
package kernel
