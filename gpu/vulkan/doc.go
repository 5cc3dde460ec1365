// Package vulkan computes on GPUs: kernels on quantised weights behind functions that record them (kernels, matvec,
// attention), for a device of internal/backend to be built from. It needs cgo; without, there is nothing here.
//
// vk is the binding, shaders the kernels' sources. Weights lie in tiles (shaders/lib/tile.glsl), activations of
// block-quantised products as signed bytes (shaders/lib/quantise.glsl), sequences' keys and values in blocks of 64
// positions. Every sum has an order that is fixed by shapes, never by who else is in the step.
package vulkan
