// A libcuda.so.1 that computes on the processor, for tests: what gpu/cuda/cu calls of NVIDIA's driver, with its results
// and its strictness. A stream is a thread of the system. A graph's nodes run in another order each time, of those that
// their dependencies allow. Memory that was not written holds no zeros. Tests have calls fail, and streams stop, by
// sluiceFakeFail and sluiceFakeStop.
#include "fibers.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <signal.h>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace {
// Results, numbered as the driver's.
enum Result {
	success = 0, invalidValue = 1, outOfMemory = 2, notInitialized = 3, invalidDevice = 101, invalidContext = 201,
	invalidPTX = 218, notFound = 500, notReady = 600, launchOutOfResources = 701, launchFailed = 719,
};

constexpr uint64_t usualMemory = uint64_t(16) << 30;
constexpr uint32_t sharedUsual = 48 << 10, sharedMost = 227 << 10;

std::mutex lock; // of all that follows
std::map<uint64_t, uint64_t> ranges, device; // memory that is known: from, bytes; and the card's own part of it
std::set<uint64_t> registered;                // memory of the program
uint64_t memory = usualMemory, used = 0;
std::map<std::string, std::pair<int, int>> faults; // by function: calls that succeed before, and the result then
std::atomic<int> broken{0};                        // the context's error, which stays
std::atomic<bool> stopped{false};
bool initialised = false;
int context; // stands for the only one
thread_local void *currentContext;

// enter begins every function that needs a context, or just the driver.
Result enter(const char *name, bool inContext = true) {
	std::lock_guard<std::mutex> hold(lock);
	auto f = faults.find(name);
	if (f != faults.end() && f->second.first-- <= 0) {
		Result r = Result(f->second.second);
		faults.erase(f);
		return r;
	}
	if (!initialised) {
		return notInitialized;
	}
	if (inContext && currentContext != &context) {
		return invalidContext;
	}
	return inContext && broken ? Result(broken.load()) : success;
}

#define ENTER(name, ...)                             \
	if (Result r = enter(name, ##__VA_ARGS__); r != success) \
	return r

// known says whether a range lies in memory that the driver knows.
bool known(uint64_t from, uint64_t bytes) {
	std::lock_guard<std::mutex> hold(lock);
	auto r = ranges.upper_bound(from);
	return r != ranges.begin() && (--r, from + bytes <= r->first + r->second);
}

void fault(const std::string &what) {
	fprintf(stderr, "fake CUDA: %s\n", what.c_str());
	broken = launchFailed;
}

// Function is a kernel of a module that was loaded.
struct Function {
	const fibers::Kernel *kernel;
	uint32_t mostShared = sharedUsual;
};

struct Module {
	std::string name;
	std::map<std::string, Function *> functions;
};

// Launch is a kernel with its arguments.
struct Launch {
	Function *function;
	uint32_t grid[3], threads, shared;
	std::vector<uint8_t> args;

	void run() const {
		std::string said = fibers::run(function->kernel, grid, threads, shared, args.data());
		if (!said.empty()) {
			fault(said);
		}
	}
};

// prepare checks a launch, and keeps its arguments.
Result prepare(Launch *l, Function *f, const uint32_t grid[3], const uint32_t block[3], uint32_t shared, void **params) {
	if (f == nullptr || params == nullptr || params[0] == nullptr || block[1] != 1 || block[2] != 1 || block[0] == 0 ||
		grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[1] > 65535 || grid[2] > 65535 || grid[0] > 0x7fffffff) {
		return invalidValue;
	}
	if (block[0] > f->kernel->threads || shared > f->mostShared) {
		return launchOutOfResources;
	}
	l->function = f;
	memcpy(l->grid, grid, sizeof l->grid);
	l->threads = block[0];
	l->shared = shared;
	auto from = static_cast<const uint8_t *>(params[0]);
	l->args.assign(from, from + f->kernel->args);
	return success;
}

// Stream is a queue with a thread that does what it holds.
struct Stream {
	std::mutex mutex;
	std::condition_variable change;
	std::deque<std::function<void()>> queue;
	bool busy = false, closing = false;
	std::thread worker;

	Stream() {
		sigset_t all, before;
		sigfillset(&all); // signals are for the program's own threads
		pthread_sigmask(SIG_SETMASK, &all, &before);
		worker = std::thread([this] { work(); });
		pthread_sigmask(SIG_SETMASK, &before, nullptr);
	}

	void work() {
		std::unique_lock<std::mutex> hold(mutex);
		for (;;) {
			change.wait(hold, [this] { return closing || !queue.empty(); });
			if (queue.empty()) {
				return;
			}
			auto next = std::move(queue.front());
			queue.pop_front();
			busy = true;
			hold.unlock();
			while (stopped && !broken) {
				std::this_thread::sleep_for(std::chrono::microseconds(50));
			}
			if (!broken) {
				next();
			}
			hold.lock();
			busy = false;
			change.notify_all();
		}
	}

	void add(std::function<void()> f) {
		std::lock_guard<std::mutex> hold(mutex);
		queue.push_back(std::move(f));
		change.notify_all();
	}

	bool idle() {
		std::lock_guard<std::mutex> hold(mutex);
		return queue.empty() && !busy;
	}

	void rest() {
		std::unique_lock<std::mutex> hold(mutex);
		change.wait(hold, [this] { return queue.empty() && !busy; });
	}
};

struct Node {
	std::function<void()> run;
	std::vector<Node *> after;
};

struct Graph {
	std::vector<Node *> nodes;
	~Graph() {
		for (Node *n : nodes) {
			delete n;
		}
	}
};

// Exec is a graph that can be launched: its nodes, and for each the numbers of those before it.
struct Exec {
	std::vector<std::function<void()>> runs;
	std::vector<std::vector<size_t>> after;
	std::mt19937 random{1};

	// run takes nodes in any order that dependencies allow.
	void run() {
		std::vector<bool> done(runs.size());
		std::vector<size_t> left;
		for (size_t i = 0; i < runs.size(); i++) {
			left.push_back(i);
		}
		while (!left.empty() && !broken) {
			size_t pick = random() % left.size();
			for (;; pick = (pick + 1) % left.size()) {
				bool may = true;
				for (size_t d : after[left[pick]]) {
					may = may && done[d];
				}
				if (may) {
					break;
				}
			}
			size_t n = left[pick];
			left.erase(left.begin() + pick);
			runs[n]();
			done[n] = true;
		}
	}
};

Result addNode(Node **to, Graph *g, Node *const *after, size_t n, std::function<void()> run) {
	for (size_t i = 0; i < n; i++) {
		bool found = false;
		for (Node *x : g->nodes) {
			found = found || x == after[i];
		}
		if (!found) {
			return invalidValue;
		}
	}
	Node *x = new Node{std::move(run), std::vector<Node *>(after, after + n)};
	g->nodes.push_back(x);
	*to = x;
	return success;
}

// The driver's structures, as it lays them out.
struct KernelNode {
	Function *function;
	uint32_t grid[3], block[3], shared;
	void **params, **extra;
	void *kern, *context;
};

struct MemcpyNode {
	size_t srcX, srcY, srcZ, srcLOD;
	uint32_t srcType;
	const void *srcHost;
	uint64_t srcDevice;
	void *srcArray, *reserved0;
	size_t srcPitch, srcHeight;
	size_t dstX, dstY, dstZ, dstLOD;
	uint32_t dstType;
	void *dstHost;
	uint64_t dstDevice;
	void *dstArray, *reserved1;
	size_t dstPitch, dstHeight;
	size_t width, height, depth;
};

struct MemsetNode {
	uint64_t to;
	size_t pitch;
	uint32_t value, elementSize;
	size_t width, height;
};

constexpr uint32_t unified = 4; // CU_MEMORYTYPE_UNIFIED

std::function<void()> copying(uint64_t to, uint64_t from, size_t n) {
	return [=] { memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), n); };
}

std::function<void()> filling(uint64_t to, uint32_t value, size_t n) {
	return [=] {
		for (size_t i = 0; i < n; i++) {
			reinterpret_cast<uint32_t *>(to)[i] = value;
		}
	};
}

// allocate maps memory that holds something.
void *allocate(size_t n) {
	void *p = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		return nullptr;
	}
	if (n <= 64 << 20) {
		memset(p, 0xa5, n);
	}
	ranges[reinterpret_cast<uint64_t>(p)] = n;
	return p;
}

Result release(uint64_t p) {
	std::lock_guard<std::mutex> hold(lock);
	auto r = ranges.find(p);
	if (r == ranges.end()) {
		return invalidValue;
	}
	if (device.count(p)) {
		used -= r->second;
		device.erase(p);
	}
	munmap(reinterpret_cast<void *>(p), r->second);
	ranges.erase(r);
	return success;
}
} // namespace

extern "C" {
// For tests: the call of a function after some has a result.
void sluiceFakeFail(const char *name, int after, int result) {
	std::lock_guard<std::mutex> hold(lock);
	faults[name] = {after, result};
}

// For tests: streams stop, and go on.
void sluiceFakeStop(int stop) { stopped = stop != 0; }

// For tests: the context has an error, as of a kernel that failed.
void sluiceFakeBreak(int result) { broken = result; }

// For tests: what is lost is as new, and memory is as large as this; 0: as usual.
void sluiceFakeReset(uint64_t bytes) {
	std::lock_guard<std::mutex> hold(lock);
	broken = 0;
	faults.clear();
	device.clear(); // what was not given back counts no more
	used = 0;
	for (uint64_t p : registered) {
		ranges.erase(p);
	}
	registered.clear();
	memory = bytes != 0 ? bytes : usualMemory;
}

// For tests of a kernel alone: it runs at once, on any memory. What goes wrong is written to said, as a C string.
int sluiceFakeRun(const char *module, const char *kernel, const uint32_t *grid, uint32_t threads, uint32_t shared,
	const void *args, uint64_t bytes, char *said, uint64_t room) {
	const fibers::Kernel *k = fibers::find(module, kernel);
	std::string fault;
	if (k == nullptr) {
		fault = "there is no such kernel";
	} else if (k->args != bytes || threads > k->threads) {
		fault = "it has arguments of " + std::to_string(k->args) + " bytes, and at most " + std::to_string(k->threads) + " threads";
	} else {
		fault = fibers::run(k, grid, threads, shared, args);
	}
	snprintf(said, room, "%s", fault.c_str());
	return fault.empty() ? success : launchFailed;
}

int cuInit(unsigned) {
	{
		std::lock_guard<std::mutex> hold(lock);
		initialised = true;
	}
	return enter("cuInit", false);
}

int cuDriverGetVersion(int *v) {
	ENTER("cuDriverGetVersion", false);
	*v = 12040;
	return success;
}

int cuDeviceGetCount(int *n) {
	ENTER("cuDeviceGetCount", false);
	*n = 1;
	return success;
}

int cuDeviceGet(int *d, int number) {
	ENTER("cuDeviceGet", false);
	*d = 0;
	return number == 0 ? success : invalidDevice;
}

int cuDeviceGetName(char *name, int n, int) {
	ENTER("cuDeviceGetName", false);
	snprintf(name, n, "processor that plays a card");
	return success;
}

int cuDeviceGetUuid_v2(char *id, int) {
	ENTER("cuDeviceGetUuid", false);
	memcpy(id, "sluice fake card", 16);
	return success;
}

int cuDeviceTotalMem_v2(size_t *n, int) {
	ENTER("cuDeviceTotalMem", false);
	*n = memory;
	return success;
}

int cuDeviceGetAttribute(int *v, int attribute, int) {
	ENTER("cuDeviceGetAttribute", false);
	static const std::map<int, int> all = {{16, 4}, {75, 8}, {76, 0}, {81, 228 << 10}, {91, 1}, {97, sharedMost}, {99, 1},
		{113, 1}, {122, 1}, {41, 1}, {40, 1}};
	auto a = all.find(attribute);
	*v = a == all.end() ? 0 : a->second;
	return success;
}

int cuDevicePrimaryCtxRetain(void **c, int) {
	ENTER("cuDevicePrimaryCtxRetain", false);
	*c = &context;
	return success;
}

int cuDevicePrimaryCtxRelease_v2(int) { return enter("cuDevicePrimaryCtxRelease", false); }

int cuCtxSetCurrent(void *c) {
	ENTER("cuCtxSetCurrent", false);
	currentContext = c;
	return success;
}

int cuDeviceCanAccessPeer(int *can, int, int) {
	ENTER("cuDeviceCanAccessPeer", false);
	*can = 1;
	return success;
}

int cuCtxEnablePeerAccess(void *, unsigned) { return enter("cuCtxEnablePeerAccess"); }

int cuMemGetInfo_v2(size_t *left, size_t *total) {
	ENTER("cuMemGetInfo");
	std::lock_guard<std::mutex> hold(lock);
	*total = memory;
	*left = memory > used ? memory - used : 0;
	return success;
}

int cuMemAlloc_v2(uint64_t *p, size_t n) {
	ENTER("cuMemAlloc");
	std::lock_guard<std::mutex> hold(lock);
	if (n == 0) {
		return invalidValue;
	}
	void *m = used + n <= memory ? allocate(n) : nullptr;
	if (m == nullptr) {
		return outOfMemory;
	}
	used += n;
	*p = reinterpret_cast<uint64_t>(m);
	device[*p] = n;
	return success;
}

int cuMemFree_v2(uint64_t p) {
	ENTER("cuMemFree");
	return release(p);
}

int cuMemHostAlloc(void **p, size_t n, unsigned) {
	ENTER("cuMemHostAlloc");
	std::lock_guard<std::mutex> hold(lock);
	if (n == 0) {
		return invalidValue;
	}
	*p = allocate(n);
	return *p != nullptr ? success : outOfMemory;
}

int cuMemFreeHost(void *p) {
	ENTER("cuMemFreeHost");
	return release(reinterpret_cast<uint64_t>(p));
}

int cuMemHostRegister_v2(void *p, size_t n, unsigned) {
	ENTER("cuMemHostRegister");
	std::lock_guard<std::mutex> hold(lock);
	if (p == nullptr || n == 0 || ranges.count(reinterpret_cast<uint64_t>(p))) {
		return invalidValue;
	}
	ranges[reinterpret_cast<uint64_t>(p)] = n;
	registered.insert(reinterpret_cast<uint64_t>(p));
	return success;
}

int cuMemHostUnregister(void *p) {
	ENTER("cuMemHostUnregister");
	std::lock_guard<std::mutex> hold(lock);
	registered.erase(reinterpret_cast<uint64_t>(p));
	return ranges.erase(reinterpret_cast<uint64_t>(p)) ? success : invalidValue;
}

int cuMemHostGetDevicePointer_v2(uint64_t *d, void *p, unsigned) {
	ENTER("cuMemHostGetDevicePointer");
	*d = reinterpret_cast<uint64_t>(p);
	return success;
}

int cuModuleLoadData(Module **m, const char *image) {
	ENTER("cuModuleLoadData");
	static const std::string marks[] = {"// module ", "cubin of "};
	for (const std::string &mark : marks) {
		if (strncmp(image, mark.c_str(), mark.size()) == 0) {
			const char *name = image + mark.size();
			std::string of(name, strcspn(name, "\n"));
			if (!fibers::hasModule(of)) {
				return invalidPTX;
			}
			*m = new Module{of, {}};
			return success;
		}
	}
	return invalidPTX;
}

int cuModuleUnload(Module *m) {
	ENTER("cuModuleUnload");
	for (auto &f : m->functions) {
		delete f.second;
	}
	delete m;
	return success;
}

int cuModuleGetFunction(Function **f, Module *m, const char *name) {
	ENTER("cuModuleGetFunction");
	Function *&found = m->functions[name];
	if (found == nullptr) {
		const fibers::Kernel *k = fibers::find(m->name, name);
		if (k == nullptr) {
			m->functions.erase(name);
			return notFound;
		}
		found = new Function{k};
	}
	*f = found;
	return success;
}

int cuFuncSetAttribute(Function *f, int attribute, int value) {
	ENTER("cuFuncSetAttribute");
	constexpr int mostShared = 8; // MAX_DYNAMIC_SHARED_SIZE_BYTES
	if (attribute != mostShared || value < 0 || uint32_t(value) > sharedMost) {
		return invalidValue;
	}
	f->mostShared = value;
	return success;
}

int cuLinkCreate_v2(unsigned, void *, void *, std::string **state) {
	ENTER("cuLinkCreate");
	*state = new std::string();
	return success;
}

int cuLinkAddData_v2(std::string *state, int, const char *data, size_t, const char *, unsigned, void *, void *) {
	ENTER("cuLinkAddData");
	Module *m = nullptr;
	if (int r = cuModuleLoadData(&m, data); r != success) {
		return r;
	}
	*state = "cubin of " + m->name + "\n";
	return cuModuleUnload(m);
}

int cuLinkComplete(std::string *state, const void **cubin, size_t *n) {
	ENTER("cuLinkComplete");
	*cubin = state->data();
	*n = state->size();
	return success;
}

int cuLinkDestroy(std::string *state) {
	ENTER("cuLinkDestroy");
	delete state;
	return success;
}

int cuStreamCreate(Stream **s, unsigned) {
	ENTER("cuStreamCreate");
	*s = new Stream();
	return success;
}

int cuStreamDestroy_v2(Stream *s) {
	if (currentContext != &context) {
		return invalidContext;
	}
	{
		std::lock_guard<std::mutex> hold(s->mutex);
		s->closing = true;
		s->change.notify_all();
	}
	s->worker.join();
	delete s;
	return success;
}

int cuStreamQuery(Stream *s) {
	ENTER("cuStreamQuery");
	return s->idle() ? success : notReady;
}

int cuStreamSynchronize(Stream *s) {
	s->rest(); // what a test has fail is at rest, too
	ENTER("cuStreamSynchronize");
	return success;
}

int cuStreamWaitValue64_v2(Stream *s, uint64_t at, uint64_t value, unsigned flags) {
	ENTER("cuStreamWaitValue64");
	if (flags != 0 || !known(at, 8)) { // 0: until it is as large
		return invalidValue;
	}
	s->add([=] {
		while (int64_t(__atomic_load_n(reinterpret_cast<uint64_t *>(at), __ATOMIC_ACQUIRE) - value) < 0 && !broken) {
			std::this_thread::sleep_for(std::chrono::microseconds(5));
		}
	});
	return success;
}

int cuStreamWriteValue64_v2(Stream *s, uint64_t at, uint64_t value, unsigned) {
	ENTER("cuStreamWriteValue64");
	if (!known(at, 8)) {
		return invalidValue;
	}
	s->add([=] { __atomic_store_n(reinterpret_cast<uint64_t *>(at), value, __ATOMIC_RELEASE); });
	return success;
}

int cuMemcpyAsync(uint64_t to, uint64_t from, size_t n, Stream *s) {
	ENTER("cuMemcpyAsync");
	if (!known(to, n) || !known(from, n)) {
		return invalidValue;
	}
	s->add(copying(to, from, n));
	return success;
}

int cuMemsetD32Async(uint64_t to, uint32_t value, size_t n, Stream *s) {
	ENTER("cuMemsetD32Async");
	if (!known(to, 4 * n)) {
		return invalidValue;
	}
	s->add(filling(to, value, n));
	return success;
}

int cuLaunchKernel(Function *f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, uint32_t shared,
	Stream *s, void **params, void **) {
	ENTER("cuLaunchKernel");
	const uint32_t grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
	Launch l;
	if (Result r = prepare(&l, f, grid, block, shared, params); r != success) {
		return r;
	}
	s->add([l = std::move(l)] { l.run(); });
	return success;
}

int cuGraphCreate(Graph **g, unsigned) {
	ENTER("cuGraphCreate");
	*g = new Graph();
	return success;
}

int cuGraphDestroy(Graph *g) {
	ENTER("cuGraphDestroy");
	delete g;
	return success;
}

int cuGraphAddKernelNode_v2(Node **to, Graph *g, Node *const *after, size_t n, const KernelNode *k) {
	ENTER("cuGraphAddKernelNode");
	Launch l;
	if (Result r = prepare(&l, k->function, k->grid, k->block, k->shared, k->params); r != success) {
		return r;
	}
	return addNode(to, g, after, n, [l = std::move(l)] { l.run(); });
}

int cuGraphAddMemcpyNode(Node **to, Graph *g, Node *const *after, size_t n, const MemcpyNode *c, void *of) {
	ENTER("cuGraphAddMemcpyNode");
	if (of != &context || c->srcType != unified || c->dstType != unified || c->height != 1 || c->depth != 1 ||
		!known(c->srcDevice + c->srcX, c->width) || !known(c->dstDevice + c->dstX, c->width)) {
		return invalidValue;
	}
	return addNode(to, g, after, n, copying(c->dstDevice + c->dstX, c->srcDevice + c->srcX, c->width));
}

int cuGraphAddMemsetNode(Node **to, Graph *g, Node *const *after, size_t n, const MemsetNode *m, void *of) {
	ENTER("cuGraphAddMemsetNode");
	if (of != &context || m->elementSize != 4 || m->height != 1 || !known(m->to, 4 * m->width)) {
		return invalidValue;
	}
	return addNode(to, g, after, n, filling(m->to, m->value, m->width));
}

int cuGraphAddEmptyNode(Node **to, Graph *g, Node *const *after, size_t n) {
	ENTER("cuGraphAddEmptyNode");
	return addNode(to, g, after, n, [] {});
}

int cuGraphInstantiateWithFlags(Exec **e, Graph *g, unsigned long long) {
	ENTER("cuGraphInstantiate");
	*e = new Exec();
	for (Node *x : g->nodes) {
		std::vector<size_t> after;
		for (size_t i = 0; i < g->nodes.size(); i++) {
			for (Node *a : x->after) {
				if (g->nodes[i] == a) {
					after.push_back(i);
				}
			}
		}
		(*e)->runs.push_back(x->run);
		(*e)->after.push_back(after);
	}
	return success;
}

int cuGraphExecDestroy(Exec *e) {
	ENTER("cuGraphExecDestroy");
	delete e;
	return success;
}

int cuGraphUpload(Exec *, Stream *) { return enter("cuGraphUpload"); }

int cuGraphLaunch(Exec *e, Stream *s) {
	ENTER("cuGraphLaunch");
	s->add([e] { e->run(); });
	return success;
}

int cuGetErrorName(int r, const char **name) {
	static const std::map<int, const char *> names = {{0, "CUDA_SUCCESS"}, {1, "CUDA_ERROR_INVALID_VALUE"},
		{2, "CUDA_ERROR_OUT_OF_MEMORY"}, {201, "CUDA_ERROR_INVALID_CONTEXT"}, {218, "CUDA_ERROR_INVALID_PTX"},
		{500, "CUDA_ERROR_NOT_FOUND"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"}, {719, "CUDA_ERROR_LAUNCH_FAILED"}};
	auto n = names.find(r);
	*name = n == names.end() ? nullptr : n->second;
	return n == names.end() ? invalidValue : success;
}

int cuGetProcAddress_v2(const char *name, void **f, int, uint64_t, int *status) {
#define AS(name, function) {name, reinterpret_cast<void *>(&function)}
#define SAME(function) AS(#function, function)
	static const std::map<std::string, void *> all = {SAME(cuInit), SAME(cuDriverGetVersion), SAME(cuDeviceGetCount),
		SAME(cuDeviceGet), SAME(cuDeviceGetName), AS("cuDeviceGetUuid", cuDeviceGetUuid_v2),
		AS("cuDeviceTotalMem", cuDeviceTotalMem_v2), SAME(cuDeviceGetAttribute), SAME(cuDevicePrimaryCtxRetain),
		AS("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease_v2), SAME(cuCtxSetCurrent),
		SAME(cuDeviceCanAccessPeer), SAME(cuCtxEnablePeerAccess),
		AS("cuMemGetInfo", cuMemGetInfo_v2), AS("cuMemAlloc", cuMemAlloc_v2), AS("cuMemFree", cuMemFree_v2),
		SAME(cuMemHostAlloc), SAME(cuMemFreeHost), AS("cuMemHostRegister", cuMemHostRegister_v2),
		SAME(cuMemHostUnregister), AS("cuMemHostGetDevicePointer", cuMemHostGetDevicePointer_v2), SAME(cuModuleLoadData),
		SAME(cuModuleUnload), SAME(cuModuleGetFunction), SAME(cuFuncSetAttribute), AS("cuLinkCreate", cuLinkCreate_v2),
		AS("cuLinkAddData", cuLinkAddData_v2), SAME(cuLinkComplete), SAME(cuLinkDestroy), SAME(cuStreamCreate),
		AS("cuStreamDestroy", cuStreamDestroy_v2), SAME(cuStreamQuery), SAME(cuStreamSynchronize),
		AS("cuStreamWaitValue64", cuStreamWaitValue64_v2), AS("cuStreamWriteValue64", cuStreamWriteValue64_v2),
		SAME(cuMemcpyAsync), SAME(cuMemsetD32Async), SAME(cuLaunchKernel), SAME(cuGraphCreate), SAME(cuGraphDestroy),
		AS("cuGraphAddKernelNode", cuGraphAddKernelNode_v2), SAME(cuGraphAddMemcpyNode), SAME(cuGraphAddMemsetNode),
		SAME(cuGraphAddEmptyNode), AS("cuGraphInstantiate", cuGraphInstantiateWithFlags), SAME(cuGraphExecDestroy),
		SAME(cuGraphUpload), SAME(cuGraphLaunch), SAME(cuGetErrorName)};
	auto x = all.find(name);
	*f = x == all.end() ? nullptr : x->second;
	*status = x == all.end() ? 1 : 0; // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
	return success;
}
}
