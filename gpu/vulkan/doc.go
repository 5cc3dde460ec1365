// Package vulkan computes on GPUs: a device of internal/backend (device, fusion, plan, record, slot, model), and the
// kernels on quantised weights that it records (kernels, matvec, attention, …). It needs cgo; without, Open says so.
//
// vk is the binding, shaders the kernels' sources. Weights lie in tiles (shaders/lib/tile.glsl), activations of
// block-quantised products as signed bytes (shaders/lib/quantise.glsl), sequences' keys and values in blocks of 64
// positions. Every sum has an order that is fixed by shapes, never by who else is in the step.
package vulkan
