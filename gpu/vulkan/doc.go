// Package vulkan is a gpu/driver for Vulkan (driver.go), with the kernels on quantised weights that it records
// (launch.go lists them: matvec, attention, …) and their formats. Open gives it to gpu/exec. It needs cgo; without,
// Open returns an error that says so.
//
// vk is the binding, shaders the kernels' sources. Weights lie in tiles (shaders/lib/tile.glsl), activations of
// block-quantised products as signed bytes (shaders/lib/quantise.glsl), sequences' keys and values in blocks of 64
// positions. Every sum has an order that is fixed by shapes, never by who else is in the step.
package vulkan
