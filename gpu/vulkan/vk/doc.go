// Package vk is the binding to Vulkan: instance, devices and their facts, memory, pipelines, recorded command buffers,
// timelines. The loader is opened at run time, so that a program which links this package starts without Vulkan too.
//
// Calls with single structures and handles go through vulkan-go, by reference to structures of our own (structs.go);
// what takes slices of structures, came after Vulkan 1.0 or records commands goes through call.go (ADR 11).
// Without cgo, and on other systems than Linux, Open is all there is, and says so. No kernels and no models live here.
package vk
