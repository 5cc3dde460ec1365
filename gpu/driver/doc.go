// Package driver is what a GPU's API has to offer to gpu/exec: memory, recordings of kernels and copies, queues with
// timelines, timestamps, and a table of kernels. gpu/vulkan and gpu/null are drivers.
package driver
