package vk

import "fmt"

// Kind is what a device is.
type Kind uint32

// Kinds of devices, numbered as Vulkan does.
const (
	Other Kind = iota
	Integrated
	Discrete
	Virtual
	CPU
)

func (k Kind) String() string {
	return [...]string{"other", "integrated", "discrete", "virtual", "CPU"}[min(k, CPU)]
}

// Facts are the properties of a device, as its driver reports them. Sizes are in bytes.
// Wide: a device reports so many facts.
type Facts struct {
	Name           string
	Kind           Kind
	Vendor, Device uint32
	API            Version
	Driver         string // name and version, as the driver writes them
	DriverUUID     [16]byte
	DeviceUUID     [16]byte
	CacheUUID      [16]byte // another one means that a pipeline cache is useless

	Shared        uint32 // shared memory of a workgroup
	Invocations   uint32 // in a workgroup
	Groups        uint32 // workgroups in the first dimension
	Push          uint32 // push constants
	MaxAllocation uint64
	MaxBuffer     uint64
	Tick          float64 // nanoseconds per unit of a timestamp
	HostAlignment uint64  // alignment of host memory that can be imported; 0: none can

	Subgroup    Subgroup
	Has         Features
	Heaps       []Heap
	MemoryTypes []MemoryType
	Queues      []QueueFamily
	Matrices    []MatrixShape // cooperative matrices of subgroups
}

// Version is major, minor and patch, packed as Vulkan does.
type Version uint32

func version(major, minor uint32) Version { return Version(major<<22 | minor<<12) }

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v>>22&0x7f, v>>12&0x3ff, v&0xfff) }

// Subgroup is the widths that subgroups can have, and whether a pipeline can ask for one of them.
type Subgroup struct {
	Size, Min, Max uint32
	Selectable     bool
	Operations     uint32 // VkSubgroupFeatureFlags
}

// The operations of subgroups that kernels use.
const (
	SubgroupBallot  = 1 << 3
	SubgroupShuffle = 1 << 4
)

// Features are what kernels can use beyond plain Vulkan 1.3.
// Wide: Vulkan has a name for each.
type Features struct {
	Int8, Int16, Int64 bool
	Float16            bool
	Storage8           bool
	Storage16          bool
	Scalar             bool // scalar block layout
	Dot4               bool // packed 4×8 bit signed dot products, accelerated or not
	FastDot4           bool
	Timeline           bool
	BufferAddress      bool
	MemoryModel        bool
	HostReset          bool // of queries
	FullSubgroups      bool
	LocalSizeID        bool // workgroup sizes by specialisation constants, of maintenance4
	Matrix             bool // cooperative matrices
	Budget             bool // the driver says how much memory is free
	Calibrates         bool // both clocks can be read together: Calibrate
}

// Heap is memory that the device reaches. Budget is how much of it this process may use, as the driver says now.
type Heap struct {
	Size, Budget, Used uint64
	Local              bool // the device's own
}

// MemoryType is a way to reach a heap.
type MemoryType struct {
	Heap                            int
	Local, Visible, Coherent, Cache bool
}

// QueueFamily is queues that can do the same.
type QueueFamily struct {
	Count                       uint32
	Graphics, Compute, Transfer bool
	StampBits                   uint32
}

// Number is the type of a cooperative matrix's elements.
type Number uint32

// Numbers, numbered as VkComponentTypeKHR.
const (
	Float16 Number = 0
	Float32 Number = 1
	Int8    Number = 3
	Int32   Number = 5
	Uint8   Number = 7
	Uint32  Number = 9
	BFloat  Number = 1000141000
)

func (n Number) String() string {
	switch n {
	case Float16:
		return "f16"
	case Float32:
		return "f32"
	case Int8:
		return "s8"
	case Int32:
		return "s32"
	case Uint8:
		return "u8"
	case Uint32:
		return "u32"
	case BFloat:
		return "bf16"
	}
	return fmt.Sprintf("type %d", uint32(n))
}

// MatrixShape is one product D = A·B + C that subgroups can make together: A is M×K, B K×N.
type MatrixShape struct {
	M, N, K    uint32
	A, B, C, D Number
	Saturating bool
}

func (s MatrixShape) String() string {
	return fmt.Sprintf("%d×%d×%d %s·%s+%s→%s", s.M, s.N, s.K, s.A, s.B, s.C, s.D)
}
