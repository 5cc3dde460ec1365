// Package system has calls that each operating system has in its own way: memory, files, terminals and limits.
//
// Files are named by what they do and the systems that do it so. Where a system has no such call, the function says so
// by its result, and its caller goes on without. What one system alone has, such as io_uring, control groups and
// drivers of GPUs, is in packages of its own.
package system
