// Package ir describes what a model computes, as data.
//
// A Program is recorded by an architecture (stages/model/arch) on a Builder, bound to the tensors of one file
// (Bind checks everything and reports all faults at once), and compiled by a device behind
// internal/backend. No weights, no memory and no execution live here.
package ir
