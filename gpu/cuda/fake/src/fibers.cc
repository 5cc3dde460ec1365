// The threads of a block as fibers: each has a stack of its own, and they take turns on one thread of the system. A fiber
// gives its turn away where it waits: at a barrier of the block, or at what a warp does together.
#include "fibers.h"
#include "../../kernels/lib/device.cuh"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <vector>

// sluiceSwitch leaves one stack for another: it keeps what a function must keep, then the stack's pointer in *from.
extern "C" __attribute__((visibility("hidden"))) void sluiceSwitch(void **from, void *to);

#if defined(__x86_64__)
asm(".text\n.type sluiceSwitch,@function\n.hidden sluiceSwitch\n.globl sluiceSwitch\nsluiceSwitch:\n"
	"pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
	"movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
	"popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
constexpr int kept = 6, returns = 6, words = 8; // words that are kept, which of them the address is, of the first frame
#elif defined(__aarch64__)
asm(".text\n.type sluiceSwitch,%function\n.hidden sluiceSwitch\n.globl sluiceSwitch\nsluiceSwitch:\n"
	"sub sp, sp, #160\nstp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\nstp x25, x26, [sp, #48]\n"
	"stp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\nstp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\n"
	"stp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\nmov x2, sp\nstr x2, [x0]\nmov sp, x1\n"
	"ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
	"ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\nldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\n"
	"ldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\nadd sp, sp, #160\nret\n");
constexpr int kept = 20, returns = 11, words = 20;
#else
#error "fibers know x86-64 and arm64"
#endif

namespace {
constexpr size_t stackBytes = 256 << 10;
constexpr unsigned warpSize = 32, mostThreads = 1024;

enum State { ready, atWarp, atBlock, over };

struct Copy {
	void *to;
	const void *from;
	uint64_t bytes;
	unsigned group;
};

struct Fiber {
	void *stack = nullptr; // where it goes on
	uint8_t *base = nullptr;
	State state = over;
	unsigned parity = 0; // of its exchanges
	unsigned group = 0;  // of its copies
	std::vector<Copy> copies;
};

// Block is what runs on one thread of the system.
struct Block {
	host::Where at = {};
	void *scheduler = nullptr;
	void (*run)(const void *) = nullptr;
	const void *args = nullptr;
	Fiber fibers[mostThreads];
	alignas(16) uint8_t slots[mostThreads / warpSize][2][warpSize * host::most];
	std::vector<uint8_t> shared;

	Fiber &mine() { return fibers[at.thread]; }
	void start(unsigned thread);
	void turn(unsigned thread);
	std::string warp(unsigned number);
	std::string block();
};

thread_local Block *current;

void wait(State s) {
	Block *b = current;
	Fiber &f = b->mine();
	f.state = s;
	sluiceSwitch(&f.stack, b->scheduler);
}

void entry() {
	current->run(current->args);
	wait(over);
	abort(); // nobody gives a turn to it
}

void Block::start(unsigned thread) {
	Fiber &f = fibers[thread];
	if (f.base == nullptr) {
		void *p = mmap(nullptr, stackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED) {
			abort();
		}
		mprotect(p, 4096, PROT_NONE); // what runs over its end is found
		f.base = static_cast<uint8_t *>(p);
	}
	uint64_t *frame = reinterpret_cast<uint64_t *>(f.base + stackBytes) - words;
	memset(frame, 0, words * sizeof *frame);
	static_assert(returns <= kept && kept <= words, "a frame has what is kept");
	frame[returns] = reinterpret_cast<uint64_t>(&entry);
	f.stack = frame;
	f.state = ready;
	f.parity = f.group = 0;
	f.copies.clear();
}

void Block::turn(unsigned thread) {
	at.thread = thread;
	sluiceSwitch(&scheduler, fibers[thread].stack);
}

// warp has the lanes of a warp take turns until each waits for the block, or is over.
std::string Block::warp(unsigned number) {
	unsigned from = number * warpSize, to = from + warpSize < at.threads ? from + warpSize : at.threads;
	for (;;) {
		unsigned waiting = 0;
		for (unsigned i = from; i < to; i++) {
			if (fibers[i].state == ready) {
				turn(i);
			}
			waiting += fibers[i].state == atWarp;
		}
		if (waiting == 0) {
			return "";
		}
		if (waiting < to - from) {
			return std::to_string(waiting) + " of " + std::to_string(to - from) + " lanes of warp " + std::to_string(number) +
				" wait for the others, which do something else";
		}
		for (unsigned i = from; i < to; i++) {
			fibers[i].state = ready;
		}
	}
}

std::string Block::block() {
	for (unsigned i = 0; i < at.threads; i++) {
		start(i);
	}
	for (;;) {
		unsigned ended = 0;
		for (unsigned w = 0; w * warpSize < at.threads; w++) {
			std::string fault = warp(w);
			if (!fault.empty()) {
				return fault;
			}
		}
		for (unsigned i = 0; i < at.threads; i++) {
			ended += fibers[i].state == over;
		}
		if (ended == at.threads) {
			return "";
		}
		if (ended > 0) {
			return std::to_string(ended) + " of " + std::to_string(at.threads) + " threads have ended, the others wait for them";
		}
		for (unsigned i = 0; i < at.threads; i++) {
			fibers[i].state = ready;
		}
	}
}

const host::Entry *entries;

// Blocks go from threads that have ended to those that begin: their stacks are many.
std::mutex spareLock;
std::vector<Block *> spare;

struct Own {
	Block *block = nullptr;

	Block *get() {
		std::lock_guard<std::mutex> hold(spareLock);
		if (block == nullptr && !spare.empty()) {
			block = spare.back();
			spare.pop_back();
		}
		return block = block == nullptr ? new Block() : block;
	}

	~Own() {
		std::lock_guard<std::mutex> hold(spareLock);
		if (block != nullptr) {
			spare.push_back(block);
		}
	}
};
} // namespace

namespace host {
Entry::Entry(const char *module, const char *name, uint64_t args, uint threads, void (*run)(const void *))
	: module(module), name(name), args(args), threads(threads), run(run), next(entries) {
	entries = this;
}

const Where &where() { return current->at; }
void sync() { wait(atBlock); }
void syncWarp() { wait(atWarp); }

uint lanes() {
	const Where &w = current->at;
	uint left = w.threads - w.thread / warpSize * warpSize;
	return left < warpSize ? left : warpSize;
}

const uint8_t *exchange(const void *mine, uint64_t bytes) {
	Block *b = current;
	Fiber &f = b->mine();
	uint8_t *all = b->slots[b->at.thread / warpSize][f.parity];
	f.parity ^= 1;
	memcpy(all + b->at.thread % warpSize * most, mine, bytes);
	wait(atWarp);
	return all;
}

// A copy is done when it is waited for: a kernel that does not wait sees what was there before.
void copyAsync(void *to, const void *from, uint64_t bytes) {
	Fiber &f = current->mine();
	f.copies.push_back({to, from, bytes, f.group});
}

void commit() { current->mine().group++; }

void waitGroups(int n) {
	Fiber &f = current->mine();
	size_t done = 0;
	for (; done < f.copies.size() && f.copies[done].group + n < f.group; done++) {
		memcpy(f.copies[done].to, f.copies[done].from, f.copies[done].bytes);
	}
	f.copies.erase(f.copies.begin(), f.copies.begin() + done);
}

uint64_t nanoseconds() {
	return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
} // namespace host

namespace fibers {
const Kernel *find(const std::string &module, const std::string &name) {
	for (const host::Entry *e = entries; e != nullptr; e = e->next) {
		if (module == e->module && name == e->name) {
			return new Kernel{e->module, e->name, e->args, e->threads, e->run};
		}
	}
	return nullptr;
}

bool hasModule(const std::string &module) {
	for (const host::Entry *e = entries; e != nullptr; e = e->next) {
		if (module == e->module) {
			return true;
		}
	}
	return false;
}

std::string run(const Kernel *k, const uint32_t grid[3], uint32_t threads, uint32_t shared, const void *args) {
	static thread_local Own own;
	Block *b = current = own.get();
	b->run = k->run;
	b->args = args;
	b->at.threads = threads;
	memcpy(b->at.grid, grid, sizeof b->at.grid);
	if (b->shared.size() < shared + 16) {
		b->shared.resize(shared + 16);
	}
	b->at.shared = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(b->shared.data()) + 15) & ~uintptr_t(15));
	for (uint32_t z = 0; z < grid[2]; z++) {
		for (uint32_t y = 0; y < grid[1]; y++) {
			for (uint32_t x = 0; x < grid[0]; x++) {
				b->at.block[0] = x, b->at.block[1] = y, b->at.block[2] = z;
				memset(b->at.shared, 0xa5, shared); // it is not defined
				std::string fault = b->block();
				if (!fault.empty()) {
					return std::string(k->module) + "." + k->name + ": block " + std::to_string(x) + "," + std::to_string(y) + "," +
						std::to_string(z) + ": " + fault;
				}
			}
		}
	}
	return "";
}
} // namespace fibers
