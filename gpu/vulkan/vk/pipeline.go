//go:build cgo && linux

package vk

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
)

const computeStage = 0x20 // VK_SHADER_STAGE_COMPUTE_BIT

// Kernel is a compiled shader with its constants.
type Kernel struct {
	Name     string
	pipeline vulkan.Pipeline
}

// KernelSource is what a kernel is compiled from.
type KernelSource struct {
	Name      string   // for errors
	Code      []byte   // SPIR-V, with one entry point called main
	Constants []uint32 // specialisation constants, by id
	Subgroup  uint32   // lanes that subgroups must have; 0: the driver chooses
}

// Compile makes a kernel. Several goroutines may compile at once: a driver compiles on the calling thread.
func (d *Device) Compile(s KernelSource) (*Kernel, error) {
	if len(s.Code) == 0 || len(s.Code)%4 != 0 {
		return nil, fmt.Errorf("kernel %s: %d bytes are no SPIR-V", s.Name, len(s.Code))
	}
	g := &d.Facts.Subgroup
	if s.Subgroup != 0 && s.Subgroup != g.Size && (!g.Selectable || s.Subgroup < g.Min || s.Subgroup > g.Max) {
		return nil, fmt.Errorf("kernel %s wants subgroups of %d lanes, the device has %d to %d",
			s.Name, s.Subgroup, g.Min, g.Max)
	}
	k := &Kernel{Name: s.Name}
	if err := d.compile(k, s); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", s.Name, err)
	}
	d.live.Add(1)
	return k, nil
}

func (d *Device) compile(k *Kernel, s KernelSource) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	code := make([]uint32, len(s.Code)/4) // a copy, aligned to words
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&code[0])), len(s.Code)), s.Code)
	module := &moduleInfo{head: head{kind: isModule}, size: uint64(len(s.Code)), code: slice(&pin, code)}
	var shader vulkan.ShaderModule
	r := d.try("vkCreateShaderModule", func() vulkan.Result {
		return vulkan.CreateShaderModule(d.handle, vulkan.NewShaderModuleCreateInfoRef(pinned(&pin, module)), nil, &shader)
	})
	if r < 0 {
		return r.err("creating its module")
	}
	defer vulkan.DestroyShaderModule(d.handle, shader, nil)

	n := uint64(len(s.Constants))
	values := &constants{count: n, size: 4 * n, data: slice(&pin, s.Constants)}
	entries := make([]constantEntry, len(s.Constants))
	for i := range entries {
		entries[i] = constantEntry{id: uint32(i), offset: 4 * uint32(i), size: 4}
	}
	values.entries = slice(&pin, entries)
	info := &computeInfo{head: head{kind: isCompute}, layout: number(d.layout), stage: stageInfo{
		head: head{kind: isStage}, stage: computeStage, module: number(shader), name: text(&pin, "main"),
		constants: address(&pin, values)}}
	if g := &d.Facts.Subgroup; s.Subgroup != 0 && g.Selectable {
		info.stage.next = address(&pin, &subgroupSize{head: head{kind: isSubgroupSize}, size: s.Subgroup})
	}
	pipeline := new(vulkan.Pipeline)
	made := d.try("vkCreateComputePipelines", func() vulkan.Result {
		return vulkan.Result(d.f.createPipelines.call(number(d.handle), number(d.cache), 1, address(&pin, info), 0,
			address(&pin, pipeline)))
	})
	if made != Success {
		return made.err("compiling")
	}
	k.pipeline = *pipeline
	return nil
}

// Release destroys kernels that no work under way uses. Nil kernels are skipped.
func (d *Device) Release(kernels ...*Kernel) {
	for _, k := range kernels {
		if k != nil && number(k.pipeline) != 0 {
			pipeline := k.pipeline
			k.pipeline = handle[vulkan.Pipeline](0)
			d.live.Add(-1)
			d.release(func() { vulkan.DestroyPipeline(d.handle, pipeline, nil) })
		}
	}
}

// UseCache makes Compile use a pipeline cache that begins with data, which CacheData returned in an earlier run.
// Drivers check data, and drop what they cannot use. It is called once, before the first Compile.
func (d *Device) UseCache(data []byte) error {
	if number(d.cache) != 0 {
		return errors.New("there is a pipeline cache already")
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	info := &cacheInfo{head: head{kind: isCache}, size: uint64(len(data)), data: slice(&pin, data)}
	cache := new(vulkan.PipelineCache)
	r := d.try("vkCreatePipelineCache", func() vulkan.Result {
		return vulkan.CreatePipelineCache(d.handle, vulkan.NewPipelineCacheCreateInfoRef(pinned(&pin, info)), nil, cache)
	})
	d.cache = *cache
	return r.err("creating a pipeline cache")
}

// CacheData is what the pipeline cache holds.
func (d *Device) CacheData() ([]byte, error) {
	if number(d.cache) == 0 {
		return nil, errors.New("there is no pipeline cache")
	}
	n := uint(0) // size_t
	if r := vulkan.GetPipelineCacheData(d.handle, d.cache, &n, nil); r < 0 {
		return nil, Result(r).err("reading the pipeline cache")
	}
	data := make([]byte, max(n, 1))
	if r := vulkan.GetPipelineCacheData(d.handle, d.cache, &n, unsafe.Pointer(&data[0])); r < 0 {
		return nil, Result(r).err("reading the pipeline cache")
	}
	return data[:n], nil
}
