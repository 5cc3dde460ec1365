//go:build cgo && linux

package vk

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/internal/testref"
)

// open opens a library and its first device, under validation where the layer is there.
func open(t testing.TB) (*Library, *Device) {
	t.Helper()
	l, err := OpenWith(Options{Validate: os.Getenv("SLUICE_VULKAN_BARE") == ""})
	if err != nil {
		missing(t, err)
	}
	all, err := l.Devices()
	if err != nil || len(all) == 0 {
		missing(t, err)
	}
	d, err := all[0].Open()
	require.NoError(t, err)
	return l, d
}

func missing(t testing.TB, err error) {
	t.Helper()
	testref.Missing(t, "vulkan", "no Vulkan device: %v", err)
}

// shut closes both and wants silence.
func shut(t testing.TB, l *Library, d *Device) {
	t.Helper()
	require.NoError(t, d.Close())
	require.NoError(t, l.Close())
	require.Empty(t, l.Messages(), "the validation layer was not silent")
}

// TestLayerOfItself: what the validation layer says of its own timeouts, and nothing else, is not held against its
// user. The first two are as CI heard them once.
func TestLayerOfItself(t *testing.T) {
	for message, want := range map[string]bool{
		"Validation Error: [ UNASSIGNED-VkSemaphore-state-timeout ] Object 0: handle = 0x50000000005, type = " +
			"VK_OBJECT_TYPE_SEMAPHORE; | MessageID = 0x57e65a33 | Timeout waiting for timeline semaphore state to update." +
			" This is most likely a validation bug. completed_.payload=0 wait_payload=1": true,
		"Validation Error: [ UNASSIGNED-VkQueue-state-timeout ] Object 0: handle = 0x7f08d08e7e18, type = " +
			"VK_OBJECT_TYPE_QUEUE; | MessageID = 0xa18271c5 | Timeout waiting for queue state to update. This is most " +
			"likely a validation bug. seq=2 until=2": true,
		"Validation Error: [ VUID-vkDestroySemaphore-semaphore-01137 ] Object 0: ... in use by a queue": false,
		"Validation Error: [ SYNC-HAZARD-READ-AFTER-WRITE ] ...":                                        false,
		"Validation Warning: [ UNASSIGNED-BestPractices ] ...":                                          false,
	} {
		require.Equal(t, want, ofItself(message), "%s", message)
	}
}

// TestStructSizes compares with what a C compiler says of Vulkan's headers, 1.3.239.
func TestStructSizes(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"VkApplicationInfo", unsafe.Sizeof(applicationInfo{}), 48},
		{"VkInstanceCreateInfo", unsafe.Sizeof(instanceInfo{}), 64},
		{"VkPhysicalDeviceProperties2", unsafe.Sizeof(properties2{}), 840},
		{"VkPhysicalDeviceFeatures2", unsafe.Sizeof(features2{}), 240},
		{"VkPhysicalDeviceVulkan11Features", unsafe.Sizeof(features11{}), 64},
		{"VkPhysicalDeviceVulkan12Features", unsafe.Sizeof(features12{}), 208},
		{"VkPhysicalDeviceVulkan13Features", unsafe.Sizeof(features13{}), 80},
		{"VkPhysicalDeviceVulkan11Properties", unsafe.Sizeof(properties11{}), 112},
		{"VkPhysicalDeviceVulkan12Properties", unsafe.Sizeof(properties12{}), 736},
		{"VkPhysicalDeviceVulkan13Properties", unsafe.Sizeof(properties13{}), 216},
		{"VkPhysicalDeviceMemoryProperties2", unsafe.Sizeof(memoryProperties2{}), 536},
		{"VkPhysicalDeviceMemoryBudgetPropertiesEXT", unsafe.Sizeof(budgetProperties{}), 272},
		{"VkPhysicalDeviceExternalMemoryHostPropertiesEXT", unsafe.Sizeof(hostMemoryProperties{}), 24},
		{"VkQueueFamilyProperties", unsafe.Sizeof(queueFamilyProperties{}), 24},
		{"VkExtensionProperties", unsafe.Sizeof(extensionProperties{}), 260},
		{"VkLayerProperties", unsafe.Sizeof(layerProperties{}), 520},
		{"VkCooperativeMatrixPropertiesKHR", unsafe.Sizeof(matrixProperties{}), 56},
		{"VkDeviceQueueCreateInfo", unsafe.Sizeof(queueInfo{}), 40},
		{"VkDeviceCreateInfo", unsafe.Sizeof(deviceInfo{}), 72},
		{"VkBufferCreateInfo", unsafe.Sizeof(bufferInfo{}), 56},
		{"VkMemoryAllocateInfo", unsafe.Sizeof(allocateInfo{}), 32},
		{"VkMemoryAllocateFlagsInfo", unsafe.Sizeof(allocateFlags{}), 24},
		{"VkExternalMemoryBufferCreateInfo", unsafe.Sizeof(externalBuffer{}), 24},
		{"VkImportMemoryHostPointerInfoEXT", unsafe.Sizeof(importHost{}), 32},
		{"VkMemoryHostPointerPropertiesEXT", unsafe.Sizeof(hostPointer{}), 24},
		{"VkMemoryRequirements", unsafe.Sizeof(memoryRequirements{}), 24},
		{"VkBufferDeviceAddressInfo", unsafe.Sizeof(addressInfo{}), 24},
		{"VkShaderModuleCreateInfo", unsafe.Sizeof(moduleInfo{}), 40},
		{"VkPushConstantRange", unsafe.Sizeof(pushRange{}), 12},
		{"VkPipelineLayoutCreateInfo", unsafe.Sizeof(layoutInfo{}), 48},
		{"VkSpecializationMapEntry", unsafe.Sizeof(constantEntry{}), 16},
		{"VkSpecializationInfo", unsafe.Sizeof(constants{}), 32},
		{"VkPipelineShaderStageRequiredSubgroupSizeCreateInfo", unsafe.Sizeof(subgroupSize{}), 24},
		{"VkPipelineShaderStageCreateInfo", unsafe.Sizeof(stageInfo{}), 48},
		{"VkComputePipelineCreateInfo", unsafe.Sizeof(computeInfo{}), 96},
		{"VkPipelineCacheCreateInfo", unsafe.Sizeof(cacheInfo{}), 40},
		{"VkCommandPoolCreateInfo", unsafe.Sizeof(commandPoolInfo{}), 24},
		{"VkCommandBufferAllocateInfo", unsafe.Sizeof(commandBuffersInfo{}), 32},
		{"VkCommandBufferBeginInfo", unsafe.Sizeof(beginInfo{}), 32},
		{"VkQueryPoolCreateInfo", unsafe.Sizeof(queryPoolInfo{}), 32},
		{"VkSemaphoreCreateInfo", unsafe.Sizeof(semaphoreInfo{}), 24},
		{"VkSemaphoreTypeCreateInfo", unsafe.Sizeof(semaphoreType{}), 32},
		{"VkMemoryBarrier", unsafe.Sizeof(memoryBarrier{}), 24},
		{"VkBufferCopy", unsafe.Sizeof(bufferCopy{}), 24},
		{"VkDebugUtilsMessengerCreateInfoEXT", unsafe.Sizeof(messengerInfo{}), 48},
		{"VkValidationFeaturesEXT", unsafe.Sizeof(validationInfo{}), 48},
	} {
		require.Equal(t, c.want, c.got, c.name)
	}
}

// copyRows runs norm.comp, which copies rows here, then copies what it wrote.
func copyRows(t testing.TB, d *Device, k *Kernel, line *Timeline, value uint64, from, to *Buffer) {
	t.Helper()
	r, err := d.Record(2)
	require.NoError(t, err)
	defer r.Close()
	r.Stamp()
	Use(r, k, &shaders.NormPush{X: from.Address, Y: to.Address, Width: 256, XStride: 256, YStride: 256})
	r.Dispatch(2, 1, 1)
	r.BarrierAll()
	r.Copy(to, 2048, to, 0, 2048)
	r.BarrierToHost()
	r.Stamp()
	require.NoError(t, r.End())
	require.NoError(t, d.Submit([]*Recording{r}, nil, Point{line, value}))
	await(t, d, line, value)
	at, err := r.Stamps()
	require.NoError(t, err)
	require.GreaterOrEqual(t, at[1], 0.0)
}

// await waits as an engine does: what has not ended by then is not destroyed before the device has come to rest.
func await(t testing.TB, d *Device, line *Timeline, value uint64) {
	t.Helper()
	err := line.Wait(value, d.Patience())
	if err != nil {
		d.Hold()
	}
	require.NoError(t, err)
}

func compileCopy(t testing.TB, d *Device) *Kernel {
	t.Helper()
	k, err := d.Compile(KernelSource{Name: "norm", Code: shaders.Norm.Code(),
		Constants: shaders.NormConstants{Threads: 64, Ktiles: 1}.List(), Subgroup: d.Facts.Subgroup.Max})
	require.NoError(t, err)
	return k
}

func TestRoundTrip(t *testing.T) {
	l, d := open(t)
	defer shut(t, l, d)
	line, err := d.NewTimeline()
	require.NoError(t, err)
	defer line.Close()
	k := compileCopy(t, d)
	defer d.Release(k)
	roundTrip(t, d, k, line, 1)
	v, err := line.Value()
	require.NoError(t, err)
	require.Equal(t, uint64(1), v)
	require.ErrorIs(t, line.Wait(9, time.Millisecond), Timeout)
	require.NoError(t, line.Signal(9))
	require.NoError(t, line.Wait(9, 0))
}

func roundTrip(t testing.TB, d *Device, k *Kernel, line *Timeline, value uint64) {
	t.Helper()
	from, err := d.Allocate(Stepwise, 2048)
	require.NoError(t, err)
	to, err := d.Allocate(Staging, 4096)
	require.NoError(t, err)
	defer d.Free(from, to)
	for i := range from.Bytes {
		from.Bytes[i] = byte(i*7+int(value)) & 0x3f // small floats
	}
	clear(to.Bytes)
	copyRows(t, d, k, line, value, from, to)
	require.Equal(t, from.Bytes, to.Bytes[:2048])
	require.Equal(t, from.Bytes, to.Bytes[2048:])
}

// TestCollector runs the whole binding while Go's collector runs without a pause and what it freed is written over.
// vulkan-go's own conversions of slices die of this within seconds.
func TestCollector(t *testing.T) {
	l, d := open(t)
	defer shut(t, l, d)
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var keep [64][]byte
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				keep[i%64] = slices.Repeat([]byte{0xdb}, 64<<(i%8)) // takes the place of what was freed
			}
		}
	}()
	for i := range uint64(60) {
		line, err := d.NewTimeline()
		require.NoError(t, err)
		k := compileCopy(t, d)
		roundTrip(t, d, k, line, i+1)
		d.Release(k)
		line.Close()
		_, err = l.Devices()
		require.NoError(t, err)
	}
	close(stop)
	<-done
}

// TestOpensBeside: a device is used while others are opened and closed.
func TestOpensBeside(t *testing.T) {
	l, d := open(t)
	defer shut(t, l, d)
	done := make(chan error)
	go func() {
		for range 20 {
			other, err := OpenWith(Options{own: true})
			if err == nil {
				err = other.Close()
			}
			if err != nil {
				done <- err
				return
			}
		}
		close(done)
	}()
	for n := 0; ; n++ {
		select {
		case err := <-done:
			require.NoError(t, err)
			require.Positive(t, n)
			return
		default:
			b, err := d.Allocate(Staging, 4096)
			require.NoError(t, err)
			d.Free(b)
		}
	}
}

// TestClosesAll opens and closes everything, and looks for what is left.
func TestClosesAll(t *testing.T) {
	threads := func() int {
		entries, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		return len(entries)
	}
	cycle := func() {
		l, d := open(t)
		line, err := d.NewTimeline()
		require.NoError(t, err)
		k := compileCopy(t, d)
		roundTrip(t, d, k, line, 1)
		d.Release(k)
		line.Close()
		shut(t, l, d)
	}
	cycle()
	before := threads()
	for range 5 {
		cycle()
	}
	require.LessOrEqual(t, threads(), before+4, "threads of drivers")
	goleak.VerifyNone(t)
}

// TestForgotten says what was not closed.
func TestForgotten(t *testing.T) {
	l, d := open(t)
	b, err := d.Allocate(Local, 100)
	require.NoError(t, err)
	require.ErrorContains(t, d.Close(), "1 objects of")
	require.NotZero(t, b.Address)
	require.NoError(t, l.Close())
	require.Empty(t, l.Messages(), "the memory was freed all the same")
}

func TestAllocate(t *testing.T) {
	l, d := open(t)
	defer shut(t, l, d)
	for _, p := range []Place{Local, Stepwise, Staging} {
		a, err := d.Allocate(p, 1000)
		require.NoError(t, err)
		b, err := d.Allocate(p, 1)
		require.NoError(t, err)
		require.Zero(t, a.Address%grain)
		require.GreaterOrEqual(t, b.Address, a.Address+1024)
		require.Equal(t, p != Local, a.Bytes != nil)
		if p != Local {
			require.Len(t, a.Bytes, 1000)
		}
		d.Free(a, nil)
		c, err := d.Allocate(p, 900)
		require.NoError(t, err)
		require.Equal(t, b.Address-1024, c.Address, "room that was given back is used")
		d.Free(b, c)
		require.Zero(t, d.Allocated(p))
	}
	_, err := d.Allocate(Local, 1<<50)
	require.ErrorContains(t, err, "1073741824.0 MiB of device memory")
}

func TestCache(t *testing.T) {
	l, d := open(t)
	defer shut(t, l, d)
	_, err := d.CacheData()
	require.Error(t, err)
	require.NoError(t, d.UseCache([]byte("this is no cache")))
	require.Error(t, d.UseCache(nil))
	k := compileCopy(t, d)
	defer d.Release(k)
	data, err := d.CacheData()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(data), 32, "a cache begins with a header of 32 bytes")
}

func TestCompileFaults(t *testing.T) {
	l, d := open(t)
	defer shut(t, l, d)
	_, err := d.Compile(KernelSource{Name: "odd", Code: []byte{1, 2, 3}})
	require.ErrorContains(t, err, "kernel odd: 3 bytes are no SPIR-V")
	_, err = d.Compile(KernelSource{Name: "wide", Code: shaders.Norm.Code(), Subgroup: 1 << 20})
	require.ErrorContains(t, err, "wants subgroups of 1048576 lanes")
}

func TestChoose(t *testing.T) {
	all := Features{Int8: true, Int16: true, Int64: true, Storage8: true, Storage16: true, Scalar: true, Timeline: true,
		BufferAddress: true, HostReset: true, LocalSizeID: true}
	device := func(name string, k Kind, size uint64, has Features) *Physical {
		return &Physical{Facts: Facts{Name: name, Kind: k, API: version(1, 3), Has: has,
			Heaps: []Heap{{Size: size, Local: true}}, Subgroup: Subgroup{Min: 32, Max: 32, Operations: SubgroupShuffle}}}
	}
	old := device("old", Discrete, 9, all)
	old.Facts.API = version(1, 2)
	list := []*Physical{device("cpu", CPU, 9, all), device("built in", Integrated, 9, all), device("small", Discrete, 1, all),
		device("large", Discrete, 2, all), device("lacking", Discrete, 9, Features{}), old}
	best, err := Choose(list, -1)
	require.NoError(t, err)
	require.Equal(t, "large", best.Facts.Name)
	best, err = Choose(list[:1], -1)
	require.NoError(t, err)
	require.Nil(t, best, "a CPU is never chosen")
	best, err = Choose(list, 0)
	require.NoError(t, err, "but may be named")
	require.Equal(t, "cpu", best.Facts.Name)
	_, err = Choose(list, 4)
	require.ErrorContains(t, err, "lacking cannot be used: it has no shaderInt64")
	_, err = Choose(list, 5)
	require.ErrorContains(t, err, "it has Vulkan 1.2.0, and 1.3 is needed")
	_, err = Choose(list, 6)
	require.ErrorContains(t, err, "there is no Vulkan device 6: 6 were found, numbered from 0")
}

// TestNothingThere says what to install where the loader or every driver is missing.
func TestNothingThere(t *testing.T) {
	_, err := OpenWith(Options{loader: "libvulkan-is-not-here.so.1"})
	require.ErrorContains(t, err, "the Vulkan loader libvulkan-is-not-here.so.1 cannot be opened")
	require.ErrorContains(t, err, "apt install libvulkan1")
	_, err = OpenWith(Options{loader: "libc.so.6"})
	require.ErrorContains(t, err, "is no Vulkan loader")
	l, d := open(t) // the loader is there
	shut(t, l, d)
	t.Setenv("VK_ICD_FILENAMES", "/nowhere.json")
	t.Setenv("VK_DRIVER_FILES", "/nowhere.json")
	_, err = OpenWith(Options{own: true})
	require.ErrorContains(t, err, "the Vulkan loader finds no driver")
	require.ErrorContains(t, err, "mesa-vulkan-drivers")
}

// TestVulkanGo holds this package to what vulkan-go does safely: structures by reference, and none of its functions
// that convert slices of structures, which it frees before they are used (ADR 11).
func TestVulkanGo(t *testing.T) {
	allowed := strings.Fields(`AllocateMemory BeginCommandBuffer BindBufferMemory CreateBuffer CreateCommandPool CreateDevice
		CreateInstance CreatePipelineCache CreatePipelineLayout CreateQueryPool CreateSemaphore CreateShaderModule
		DestroyBuffer DestroyCommandPool DestroyDevice DestroyInstance DestroyPipeline DestroyPipelineCache
		DestroyPipelineLayout DestroyQueryPool DestroySemaphore DestroyShaderModule DeviceWaitIdle EndCommandBuffer
		EnumeratePhysicalDevices FreeCommandBuffers FreeMemory GetDeviceQueue GetPipelineCacheData Init InitInstance
		MapMemory QueueWaitIdle SetGetInstanceProcAddr
		Buffer CommandBuffer CommandPool Device DeviceMemory DeviceSize Instance PhysicalDevice Pipeline PipelineCache
		PipelineLayout QueryPool Queue Result Semaphore ShaderModule`)
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	found := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(f.Name())
		require.NoError(t, err)
		for _, part := range strings.Split(string(text), "vulkan.")[1:] {
			name := part[:strings.IndexFunc(part, func(r rune) bool { return !('a' <= r|32 && r|32 <= 'z') })]
			byRef := strings.HasPrefix(name, "New") && strings.HasSuffix(name, "InfoRef")
			if name != "" && name[0] < 'a' {
				found++
				require.True(t, byRef || slices.Contains(allowed, name), "%s uses vulkan.%s", f.Name(), name)
			}
		}
	}
	require.Greater(t, found, 50)
}
