// Package vulkan is Vulkan as a gpu/driver (driver.go), with the kernels on quantised weights that it records
// (launch.go has all of them: matvec, attention, …) and their formats. Open gives it to gpu/exec. It needs cgo;
// without, Open says so.
//
// vk is the binding, shaders the kernels' sources. Weights lie in tiles (shaders/lib/tile.glsl), activations of
// block-quantised products as signed bytes (shaders/lib/quantise.glsl), sequences' keys and values in blocks of 64
// positions. Every sum has an order that is fixed by shapes, never by who else is in the step.
package vulkan
