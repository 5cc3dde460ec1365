// Package driver is the interface between gpu/exec and a GPU's API: memory, recordings of kernels and copies, queues
// with timelines, timestamps, and a table of kernels. gpu/vulkan, gpu/cuda and gpu/null implement it.
package driver
