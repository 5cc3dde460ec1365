// Package ir describes what a model computes, as data, and what each op means.
//
// A Program is recorded by an architecture (stages/model/arch) on a Builder, bound to the tensors of one file
// (Bind checks everything and reports all faults at once), and compiled by a device behind internal/backend.
// An op has one file, op_NAME.go: the methods that record it, its rule, its plain loop over a Frame, and the cases that
// devices are tested by. No weights, no memory and no kernels live here.
package ir
