//go:build cgo && linux

package vk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"

	vulkan "github.com/vulkan-go/vulkan"
)

// Physical is a device that can be opened.
type Physical struct {
	Facts      Facts
	library    *Library
	handle     vulkan.PhysicalDevice
	extensions map[string]bool
}

// Devices lists the devices in the loader's order.
func (l *Library) Devices() ([]*Physical, error) {
	n := uint32(0)
	if r := vulkan.EnumeratePhysicalDevices(l.instance, &n, nil); r < 0 {
		return nil, Result(r).err("listing Vulkan devices")
	}
	handles := make([]vulkan.PhysicalDevice, n)
	if r := vulkan.EnumeratePhysicalDevices(l.instance, &n, handles); r < 0 {
		return nil, Result(r).err("listing Vulkan devices")
	}
	all := make([]*Physical, n)
	for i := range all {
		all[i] = &Physical{library: l, handle: handles[i]}
		all[i].query()
		if err := all[i].without(l.lacks); err != nil {
			return nil, err
		}
		all[i].try()
	}
	return all, nil
}

// try changes the facts of a device as a test wants.
func (p *Physical) try() {
	if t := p.library.trial; t != nil && t.Facts != nil {
		t.Facts(&p.Facts)
	}
}

// features are the structures in which a device's features are asked for and enabled. Their flags are booleans.
type features struct {
	core   features2
	f11    features11
	f12    features12
	f13    features13
	matrix matrixFeatures
}

// chain links the structures, without that of cooperative matrices if the device does not know it.
func (f *features) chain(pin *runtime.Pinner, matrix bool) uint64 {
	f.core.kind, f.f11.kind, f.f12.kind, f.f13.kind = isFeatures2, isFeatures11, isFeatures12, isFeatures13
	f.matrix.kind = isMatrixFeatures
	f.core.next, f.f11.next, f.f12.next = address(pin, &f.f11), address(pin, &f.f12), address(pin, &f.f13)
	if matrix {
		f.f13.next = address(pin, &f.matrix)
	}
	return address(pin, &f.core)
}

// flag is one feature: its name, and where it is in Vulkan's structures and in Facts.
type flag struct {
	name   string // in Vulkan
	at     func(*features) *uint32
	has    func(*Features) *bool
	needed bool // no kernel runs without it
}

var flags = []flag{
	{"shaderInt64", func(f *features) *uint32 { return &f.core.flags[40] }, func(h *Features) *bool { return &h.Int64 }, true},
	{"shaderInt16", func(f *features) *uint32 { return &f.core.flags[41] }, func(h *Features) *bool { return &h.Int16 }, true},
	{"storageBuffer16BitAccess", func(f *features) *uint32 { return &f.f11.flags[0] }, func(h *Features) *bool { return &h.Storage16 }, true},
	{"storageBuffer8BitAccess", func(f *features) *uint32 { return &f.f12.flags[2] }, func(h *Features) *bool { return &h.Storage8 }, true},
	{"shaderFloat16", func(f *features) *uint32 { return &f.f12.flags[7] }, func(h *Features) *bool { return &h.Float16 }, false},
	{"shaderInt8", func(f *features) *uint32 { return &f.f12.flags[8] }, func(h *Features) *bool { return &h.Int8 }, true},
	{"scalarBlockLayout", func(f *features) *uint32 { return &f.f12.flags[31] }, func(h *Features) *bool { return &h.Scalar }, true},
	{"hostQueryReset", func(f *features) *uint32 { return &f.f12.flags[36] }, func(h *Features) *bool { return &h.HostReset }, true},
	{"timelineSemaphore", func(f *features) *uint32 { return &f.f12.flags[37] }, func(h *Features) *bool { return &h.Timeline }, true},
	{"bufferDeviceAddress", func(f *features) *uint32 { return &f.f12.flags[38] }, func(h *Features) *bool { return &h.BufferAddress }, true},
	{"vulkanMemoryModel", func(f *features) *uint32 { return &f.f12.flags[41] }, func(h *Features) *bool { return &h.MemoryModel }, false},
	{"subgroupSizeControl", func(f *features) *uint32 { return &f.f13.flags[7] }, nil, false},
	{"computeFullSubgroups", func(f *features) *uint32 { return &f.f13.flags[8] }, func(h *Features) *bool { return &h.FullSubgroups }, false},
	{"shaderIntegerDotProduct", func(f *features) *uint32 { return &f.f13.flags[13] }, func(h *Features) *bool { return &h.Dot4 }, false},
	{"maintenance4", func(f *features) *uint32 { return &f.f13.flags[14] }, func(h *Features) *bool { return &h.LocalSizeID }, true},
	{"cooperativeMatrix", func(f *features) *uint32 { return &f.matrix.flags[0] }, func(h *Features) *bool { return &h.Matrix }, false},
}

// Missing says what the device lacks to run kernels; nil if nothing.
func (p *Physical) Missing() error {
	var faults []string
	if p.Facts.API < version(1, 3) {
		faults = append(faults, fmt.Sprintf("it has Vulkan %s, and 1.3 is needed", p.Facts.API))
	}
	for _, f := range flags {
		if f.needed && f.has != nil && !*f.has(&p.Facts.Has) {
			faults = append(faults, "it has no "+f.name)
		}
	}
	s := p.Facts.Subgroup
	if s.Max < 8 || s.Min < 8 && !s.Selectable || s.Operations&SubgroupShuffle == 0 {
		faults = append(faults, fmt.Sprintf("its subgroups have %d to %d lanes, operations %#x: 8 lanes and shuffles are needed",
			s.Min, s.Max, s.Operations))
	}
	if len(faults) == 0 {
		return nil
	}
	return errors.New(p.Facts.Name + " cannot be used: " + strings.Join(faults, "; ") + ". A newer driver may help")
}

func (p *Physical) query() {
	p.queryExtensions()
	p.queryProperties()
	if p.Facts.API < version(1, 3) {
		return // older versions do not know the structures below
	}
	p.queryFeatures()
	p.queryMemory()
	p.queryQueues()
	p.queryMatrices()
	p.Facts.Has.Calibrates = p.calibrates()
}

func (p *Physical) queryExtensions() {
	var pin runtime.Pinner
	defer pin.Unpin()
	n := new(uint32)
	p.extensions = map[string]bool{}
	if p.library.f.extensions.call(number(p.handle), 0, address(&pin, n), 0) < 0 {
		return
	}
	all := make([]extensionProperties, *n)
	if p.library.f.extensions.call(number(p.handle), 0, address(&pin, n), slice(&pin, all)) < 0 {
		return
	}
	for i := range all {
		p.extensions[cString(all[i].name[:])] = true
	}
}

// Offsets within VkPhysicalDeviceProperties. Its limits begin at 296.
const (
	atAPI         = 0
	atVendor      = 8
	atDevice      = 12
	atKind        = 16
	atName        = 20
	atCacheUUID   = 276
	atPush        = 296 + 32
	atShared      = 296 + 216
	atGroups      = 296 + 220
	atInvocations = 296 + 232
	atTick        = 296 + 424
)

func (p *Physical) queryProperties() {
	var pin runtime.Pinner
	defer pin.Unpin()
	core, p11 := &properties2{head: head{kind: isProperties2}}, &properties11{head: head{kind: isProperties11}}
	p12, p13 := &properties12{head: head{kind: isProperties12}}, &properties13{head: head{kind: isProperties13}}
	hostMemory := &hostMemoryProperties{head: head{kind: isHostMemory}}
	p.library.f.properties.word(number(p.handle), address(&pin, core))
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(core.properties[at:]) }
	f := &p.Facts
	f.API, f.Vendor, f.Device, f.Kind = Version(u32(atAPI)), u32(atVendor), u32(atDevice), Kind(u32(atKind))
	f.Name = cString(core.properties[atName : atName+256])
	copy(f.CacheUUID[:], core.properties[atCacheUUID:])
	f.Push, f.Shared, f.Groups, f.Invocations = u32(atPush), u32(atShared), u32(atGroups), u32(atInvocations)
	f.Tick = float64(math.Float32frombits(u32(atTick)))
	if f.API < version(1, 3) {
		return
	}
	core.next, p11.next, p12.next = address(&pin, p11), address(&pin, p12), address(&pin, p13)
	if p.extensions["VK_EXT_external_memory_host"] {
		p13.next = address(&pin, hostMemory)
	}
	p.library.f.properties.word(number(p.handle), address(&pin, core))
	f.DeviceUUID, f.DriverUUID = p11.deviceUUID, p11.driverUUID
	f.MaxAllocation, f.MaxBuffer, f.HostAlignment = p11.maxAllocation, p13.maxBuffer, hostMemory.alignment
	f.Driver = strings.TrimSpace(cString(p12.driverName[:]) + " " + cString(p12.driverInfo[:]))
	const compute = 0x20 // VK_SHADER_STAGE_COMPUTE_BIT
	f.Subgroup = Subgroup{Size: p11.subgroupSize, Min: p13.minSubgroup, Max: p13.maxSubgroup,
		Selectable: p13.sizeStages&compute != 0, Operations: p11.subgroupOperations}
	f.Has.FastDot4 = p13.dot4Signed != 0
}

func (p *Physical) queryFeatures() {
	var pin runtime.Pinner
	defer pin.Unpin()
	all := new(features)
	p.library.f.features.word(number(p.handle), all.chain(&pin, p.extensions["VK_KHR_cooperative_matrix"]))
	has := &p.Facts.Has
	for _, f := range flags {
		if f.has != nil {
			*f.has(has) = *f.at(all) != 0
		}
	}
	has.FastDot4 = has.FastDot4 && has.Dot4
	has.Budget = p.extensions["VK_EXT_memory_budget"]
	p.Facts.Subgroup.Selectable = p.Facts.Subgroup.Selectable && all.f13.flags[7] != 0
}

// queryMemory fills in the heaps, with budgets as they are now, and the types of memory.
func (p *Physical) queryMemory() {
	var pin runtime.Pinner
	defer pin.Unpin()
	m, budget := &memoryProperties2{head: head{kind: isMemory2}}, &budgetProperties{head: head{kind: isBudget}}
	if p.Facts.Has.Budget {
		m.next = address(&pin, budget)
	}
	p.library.f.memory.word(number(p.handle), address(&pin, m))
	p.Facts.Heaps, p.Facts.MemoryTypes = nil, nil
	for i, h := range m.heaps[:m.heapCount] {
		heap := Heap{Size: h.size, Budget: h.size, Local: h.flags&1 != 0}
		if p.Facts.Has.Budget {
			heap.Budget, heap.Used = budget.budget[i], budget.used[i]
		}
		p.Facts.Heaps = append(p.Facts.Heaps, heap)
	}
	for _, t := range m.types[:m.typeCount] {
		p.Facts.MemoryTypes = append(p.Facts.MemoryTypes, MemoryType{Heap: int(t.heap), Local: t.flags&1 != 0,
			Visible: t.flags&2 != 0, Coherent: t.flags&4 != 0, Cache: t.flags&8 != 0})
	}
}

// Budgets reads again how much memory there is and how much is free, heap by heap.
func (p *Physical) Budgets() []Heap {
	p.queryMemory()
	p.try()
	return p.Facts.Heaps
}

func (p *Physical) queryQueues() {
	var pin runtime.Pinner
	defer pin.Unpin()
	n := new(uint32)
	p.library.f.queues.word(number(p.handle), address(&pin, n), 0)
	all := make([]queueFamilyProperties, *n)
	p.library.f.queues.word(number(p.handle), address(&pin, n), slice(&pin, all))
	for _, q := range all {
		p.Facts.Queues = append(p.Facts.Queues, QueueFamily{Count: q.count, Graphics: q.flags&1 != 0,
			Compute: q.flags&2 != 0, Transfer: q.flags&7 != 0, StampBits: q.stampBits})
	}
}

func (p *Physical) queryMatrices() {
	const subgroup = 3 // VK_SCOPE_SUBGROUP_KHR
	if !p.Facts.Has.Matrix || p.library.f.matrices == 0 {
		return
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	n := new(uint32)
	if p.library.f.matrices.call(number(p.handle), address(&pin, n), 0) < 0 {
		return
	}
	all := make([]matrixProperties, *n)
	for i := range all {
		all[i].kind = isMatrixProperties
	}
	if p.library.f.matrices.call(number(p.handle), address(&pin, n), slice(&pin, all)) < 0 {
		return
	}
	for _, m := range all {
		if m.scope == subgroup {
			p.Facts.Matrices = append(p.Facts.Matrices, MatrixShape{m.m, m.n, m.k, m.a, m.b, m.c, m.d, m.saturating != 0})
		}
	}
}

// Choose picks the device to compute on: number index of the list, or, for -1, the best that can run kernels and is no
// CPU, discrete before integrated; nil: there is none.
func Choose(all []*Physical, index int) (*Physical, error) {
	if index >= len(all) {
		return nil, fmt.Errorf("there is no Vulkan device %d: %d were found, numbered from 0", index, len(all))
	}
	if index >= 0 {
		return all[index], all[index].Missing()
	}
	var best *Physical
	for _, p := range all {
		if p.Facts.Kind == CPU || p.Missing() != nil {
			continue
		}
		if best == nil || rank(p) > rank(best) {
			best = p
		}
	}
	return best, nil
}

// rank orders devices by kind, then by memory of their own.
func rank(p *Physical) uint64 {
	order := map[Kind]uint64{Discrete: 3, Virtual: 2, Integrated: 1}
	local := uint64(0)
	for _, h := range p.Facts.Heaps {
		if h.Local {
			local = max(local, h.Size)
		}
	}
	return order[p.Facts.Kind]<<56 | local
}
