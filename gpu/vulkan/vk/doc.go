// Package vk is the binding to Vulkan: instance, devices and their facts, memory, pipelines, recorded command buffers,
// timelines. The loader is opened at run time, so that a program which links this package starts without Vulkan too.
//
// Calls with single structures and handles go through vulkan-go, by reference to structures of our own (structs.go).
// Calls that take slices of structures, came after Vulkan 1.0 or record commands go through call.go (ADR 11). Without
// cgo, and on other systems than Linux, there is only Open, which returns an error that says so. No kernels and no
// models live here.
package vk
