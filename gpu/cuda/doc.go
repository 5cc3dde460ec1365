// Package cuda is a gpu/driver for CUDA (driver.go), with the kernels on quantised weights that it records
// (kernels.go). Open gives it to gpu/exec. It needs NVIDIA's driver and nothing else.
//
// cu is the binding, kernels the kernels' sources; fake is a driver for tests on machines without a card. A recording
// is a list of kernels and copies; one that is run again and again becomes a CUDA graph (recording.go). Weights lie as
// gpu/tile has them, activations as lib/quantise.cuh, sequences' keys and values in blocks of 64 positions. Every sum
// has an order that is fixed by shapes, and is Vulkan's, never by who else is in the step.
package cuda
