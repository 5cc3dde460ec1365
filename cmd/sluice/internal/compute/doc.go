// Package compute has the flags by which a model is run, and runs it: devices, budgets of memory, sampling, forms of
// answers, recordings, and how fast this machine was measured to be.
package compute
