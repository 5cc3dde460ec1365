// Kernels that run on the processor.
#pragma once
#include <cstdint>
#include <string>

namespace fibers {
// Kernel is one that was compiled into this library.
struct Kernel {
	const char *module, *name;
	uint64_t args;
	uint32_t threads;
	void (*run)(const void *);
};

// find is a kernel by its names, or null.
const Kernel *find(const std::string &module, const std::string &name);

// hasModule says whether a module has kernels here.
bool hasModule(const std::string &module);

// run runs a grid of blocks, one after the other. What went wrong is returned: threads that miss a barrier.
std::string run(const Kernel *k, const uint32_t grid[3], uint32_t threads, uint32_t shared, const void *args);
} // namespace fibers
