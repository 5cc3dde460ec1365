//go:build cgo && linux

package vk

// Structures as C lays them out on 64-bit machines. Pointers are numbers: what they point to is pinned by whoever
// fills them in (address, slice, text). TestStructSizes compares their sizes with those of Vulkan's headers.

// head is the begin of every extensible structure.
type head struct {
	kind uint32 // VkStructureType
	_    uint32
	next uint64
}

// Values of VkStructureType.
const (
	isApplication      = 0
	isInstance         = 1
	isQueue            = 2
	isDevice           = 3
	isAllocate         = 5
	isSemaphore        = 9
	isQueryPool        = 11
	isBuffer           = 12
	isModule           = 16
	isCache            = 17
	isStage            = 18
	isCompute          = 29
	isLayout           = 30
	isCommandPool      = 39
	isCommandBuffers   = 40
	isBegin            = 42
	isBarrier          = 46
	isFeatures11       = 49
	isProperties11     = 50
	isFeatures12       = 51
	isProperties12     = 52
	isFeatures13       = 53
	isProperties13     = 54
	isFeatures2        = 1000059000
	isProperties2      = 1000059001
	isMemory2          = 1000059006
	isAllocateFlags    = 1000060000
	isExternalBuffer   = 1000072000
	isMessenger        = 1000128004
	isImportHost       = 1000178000
	isHostPointer      = 1000178001
	isHostMemory       = 1000178002
	isSemaphoreType    = 1000207002
	isSubgroupSize     = 1000225001
	isBudget           = 1000237000
	isAddress          = 1000244001
	isValidation       = 1000247000
	isMatrixFeatures   = 1000506000
	isMatrixProperties = 1000506001
)

type applicationInfo struct {
	head
	name          uint64
	version, _    uint32
	engine        uint64
	engineVersion uint32
	api           Version
}

type instanceInfo struct {
	head
	flags          uint64
	application    uint64
	layerCount     uint64
	layers         uint64
	extensionCount uint64
	extensions     uint64
}

type properties2 struct {
	head
	properties [824]byte
}

type features2 struct {
	head
	flags [56]uint32
}

type features11 struct {
	head
	flags [12]uint32
}

type features12 struct {
	head
	flags [48]uint32
}

type features13 struct {
	head
	flags [16]uint32
}

type matrixFeatures struct {
	head
	flags [2]uint32
}

type properties11 struct {
	head
	deviceUUID, driverUUID, _                              [16]byte
	subgroupSize, subgroupStages, subgroupOperations, quad uint32
	_                                                      [5]uint32
	_                                                      uint32
	maxAllocation                                          uint64
}

type properties12 struct {
	head
	driverID   uint32
	driverName [256]byte
	driverInfo [256]byte
	_          [204]byte
}

type properties13 struct {
	head
	minSubgroup, maxSubgroup, maxSubgroups, sizeStages uint32
	_                                                  [40]byte
	dot4Signed                                         uint32 // integerDotProduct4x8BitPackedSignedAccelerated
	_                                                  [132]byte
	maxBuffer                                          uint64
}

type hostMemoryProperties struct {
	head
	alignment uint64
}

type memoryProperties2 struct {
	head
	typeCount uint32
	types     [32]struct{ flags, heap uint32 }
	heapCount uint32
	heaps     [16]struct {
		size     uint64
		flags, _ uint32
	}
}

type budgetProperties struct {
	head
	budget, used [16]uint64
}

type queueFamilyProperties struct {
	flags, count, stampBits uint32
	_                       [3]uint32
}

type extensionProperties struct {
	name [256]byte
	_    uint32
}

type layerProperties struct {
	name [256]byte
	_    [264]byte
}

type matrixProperties struct {
	head
	m, n, k    uint32
	a, b, c, d Number
	saturating uint32
	scope      uint32
	_          uint32
}

type queueInfo struct {
	head
	_, family  uint32
	count      uint64
	priorities uint64
}

type deviceInfo struct {
	head
	_, queueCount  uint32
	queues         uint64
	layerCount     uint64
	layers         uint64
	extensionCount uint64
	extensions     uint64
	features       uint64
}

type bufferInfo struct {
	head
	flags       uint64
	size        uint64
	usage       uint32
	sharing     uint32
	familyCount uint64
	families    uint64
}

type allocateInfo struct {
	head
	size       uint64
	memoryType uint32
	_          uint32
}

type allocateFlags struct {
	head
	flags, mask uint32
}

// externalBuffer says from which kinds of handles a buffer's memory may come.
type externalBuffer struct {
	head
	kinds, _ uint32
}

// importHost asks for memory that is the program's.
type importHost struct {
	head
	kind, _ uint32
	memory  uint64
}

// hostPointer returns of which types imported memory can be.
type hostPointer struct {
	head
	types, _ uint32
}

type memoryRequirements struct {
	size, alignment uint64
	types, _        uint32
}

type addressInfo struct {
	head
	buffer uint64
}

type moduleInfo struct {
	head
	flags uint64
	size  uint64
	code  uint64
}

type pushRange struct{ stages, offset, size uint32 }

type layoutInfo struct {
	head
	_, setCount uint32
	sets        uint64
	rangeCount  uint64
	ranges      uint64
}

type constantEntry struct {
	id, offset uint32
	size       uint64
}

type constants struct {
	count   uint64
	entries uint64
	size    uint64
	data    uint64
}

type subgroupSize struct {
	head
	size, _ uint32
}

type stageInfo struct {
	head
	flags, stage uint32
	module       uint64
	name         uint64
	constants    uint64
}

type computeInfo struct {
	head
	flags     uint64
	stage     stageInfo
	layout    uint64
	base      uint64
	baseIndex uint64
}

type cacheInfo struct {
	head
	flags uint64
	size  uint64
	data  uint64
}

type commandPoolInfo struct {
	head
	flags, family uint32
}

type commandBuffersInfo struct {
	head
	pool         uint64
	level, count uint32
}

type beginInfo struct {
	head
	flags   uint64
	inherit uint64
}

type queryPoolInfo struct {
	head
	flags, kind, count, statistics uint32
}

type semaphoreInfo struct {
	head
	flags uint64
}

type semaphoreType struct {
	head
	kind, _ uint32
	value   uint64
}

type memoryBarrier struct {
	head
	from, to uint32
}

type bufferCopy struct{ from, to, size uint64 }

type messengerInfo struct {
	head
	flags, severity uint32
	types           uint32
	_               uint32
	callback        uint64
	user            uint64
}

type validationInfo struct {
	head
	enableCount, _ uint32
	enable         uint64
	disableCount   uint64
	disable        uint64
}
