//go:build cgo && linux

package vk

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
	vulkan "github.com/vulkan-go/vulkan"
)

// Library is the opened Vulkan loader with an instance of its own.
type Library struct {
	handle   uintptr
	get      function // vkGetInstanceProcAddr
	instance vulkan.Instance
	shared   bool      // the instance is the one that the process shares
	messages *messages // nil without validation
	messager uint64
	trial    *Trial
	lacks    []string     // capabilities that devices are treated as lacking
	devices  atomic.Int32 // devices that are open, or were left since they hang
	f        struct {
		properties, features, memory, queues, extensions, matrices function
		destroyMessenger                                           function
	}
}

// Options say how devices are used; most are for tests.
type Options struct {
	Without  []string // capabilities that are not used, as those that a driver reports but does badly; "all": Optional
	Validate bool     // run under the validation layer; Validating says whether it is there
	Trial    *Trial   // faults that a test causes; nil: none
	loader   string   // in place of loaderName
	own      bool     // an instance of its own, which Close destroys
}

const validationLayer = "VK_LAYER_KHRONOS_validation"

// The name of the loader, as every system's run-time package has it; libvulkan.so belongs to development packages.
const loaderName = "libvulkan.so.1"

// Open opens the loader and makes an instance. Without a loader or a driver the error says what to install.
func Open() (*Library, error) { return OpenWith(Options{}) }

// OpenWith is Open with options.
func OpenWith(o Options) (*Library, error) {
	name := cmp.Or(o.loader, loaderName)
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("the Vulkan loader %s cannot be opened (%w): install it (Debian, Ubuntu: apt install libvulkan1; "+
			"Fedora: dnf install vulkan-loader; Arch: pacman -S vulkan-icd-loader) and your card's driver", name, err)
	}
	l := &Library{handle: handle, trial: o.Trial, lacks: o.Without}
	if err := l.open(o); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// functions guards vulkan-go's one set of function pointers for the process. They are looked up once: while they are
// replaced for another instance, calls of other goroutines would find no function. Those found with one instance are
// the loader's own, which is never unloaded, and serve every instance.
var functions struct {
	loader, instance     sync.Once
	noLoader, noInstance error
}

func (l *Library) open(o Options) error {
	get, err := purego.Dlsym(l.handle, "vkGetInstanceProcAddr")
	if err != nil {
		return fmt.Errorf("%s is no Vulkan loader: %w", loaderName, err)
	}
	l.get = function(get)
	functions.loader.Do(func() {
		vulkan.SetGetInstanceProcAddr(*(*unsafe.Pointer)(unsafe.Pointer(&get)))
		functions.noLoader = vulkan.Init()
	})
	if functions.noLoader != nil {
		return functions.noLoader
	}
	if v := l.version(); v < version(1, 3) {
		return fmt.Errorf("the Vulkan loader knows Vulkan %s, and 1.3 is needed: install a newer libvulkan1", v)
	}
	if err := l.take(o); err != nil {
		return err
	}
	functions.instance.Do(func() { functions.noInstance = vulkan.InitInstance(l.instance) })
	if functions.noInstance != nil {
		return functions.noInstance
	}
	l.f.properties = l.function("vkGetPhysicalDeviceProperties2")
	l.f.features = l.function("vkGetPhysicalDeviceFeatures2")
	l.f.memory = l.function("vkGetPhysicalDeviceMemoryProperties2")
	l.f.queues = l.function("vkGetPhysicalDeviceQueueFamilyProperties")
	l.f.extensions = l.function("vkEnumerateDeviceExtensionProperties")
	l.f.matrices = l.function("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR")
	l.f.destroyMessenger = l.function("vkDestroyDebugUtilsMessengerEXT")
	return nil
}

// function finds a function of the instance, or, before there is one, of the loader; 0: it is unknown.
func (l *Library) function(name string) function {
	var pin runtime.Pinner
	defer pin.Unpin()
	return function(l.get.word(number(l.instance), text(&pin, name)))
}

// number is a handle as a number. A handle is a pointer or 64 bits.
func number[T any](handle T) uint64 { return *(*uint64)(unsafe.Pointer(&handle)) }

// handle is a number as a handle.
func handle[T any](n uint64) T { return *(*T)(unsafe.Pointer(&n)) }

func (l *Library) version() Version {
	var pin runtime.Pinner
	defer pin.Unpin()
	v := new(Version)
	if f := l.function("vkEnumerateInstanceVersion"); f == 0 || f.call(address(&pin, v)) < 0 {
		return version(1, 0)
	}
	return *v
}

// process is the instance that all libraries share, but those under validation. It is never destroyed: with the last
// instance the loader unloads the drivers. NVIDIA's driver then crashes threads that end later, and can only be loaded
// some dozens of times.
var process struct {
	sync.Mutex
	instance vulkan.Instance
}

// take uses the process's instance, or makes one.
func (l *Library) take(o Options) error {
	if o.own || o.Validate && l.hasValidation() {
		return l.create(o)
	}
	process.Lock()
	defer process.Unlock()
	if number(process.instance) == 0 {
		if err := l.create(o); err != nil {
			return err
		}
		process.instance = l.instance
	}
	l.instance, l.shared = process.instance, true
	return nil
}

func (l *Library) create(o Options) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	app := &applicationInfo{head: head{kind: isApplication}, name: text(&pin, "sluice"), engine: text(&pin, "sluice"),
		api: version(1, 3)}
	info := &instanceInfo{head: head{kind: isInstance}, application: address(&pin, app)}
	if o.Validate && l.hasValidation() {
		l.messages = newMessages()
		l.validate(&pin, info)
	}
	instance := new(vulkan.Instance) // allocated alone: cgo checks all of an object that it is given a part of
	r := vulkan.CreateInstance(vulkan.NewInstanceCreateInfoRef(pinned(&pin, info)), nil, instance)
	l.instance = *instance
	switch {
	case Result(r) == noDriver:
		return errors.New("the Vulkan loader finds no driver: install your card's (Debian, Ubuntu: apt install " +
			"mesa-vulkan-drivers, or NVIDIA's driver with its Vulkan part; VK_DRIVER_FILES names an .json file elsewhere)")
	case r < 0:
		return Result(r).err("creating a Vulkan instance")
	}
	if l.messages != nil {
		return l.listen(&pin)
	}
	return nil
}

// validate adds the validation layer, with checks of synchronisation, to what the instance is made of.
func (l *Library) validate(pin *runtime.Pinner, info *instanceInfo) {
	const synchronisation = 4 // VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
	features := &validationInfo{head: head{kind: isValidation, next: address(pin, l.messenger())},
		enableCount: 1, enable: slice(pin, []uint32{synchronisation})}
	info.next = address(pin, features)
	info.layerCount, info.layers = 1, texts(pin, []string{validationLayer})
	extensions := []string{"VK_EXT_debug_utils", "VK_EXT_validation_features"}
	info.extensionCount, info.extensions = uint64(len(extensions)), texts(pin, extensions)
}

// messenger describes the callback for warnings and errors of every kind.
func (l *Library) messenger() *messengerInfo {
	return &messengerInfo{head: head{kind: isMessenger}, severity: 0x1100, types: 7,
		callback: messageFunction(), user: uint64(uintptr(unsafe.Pointer(l.messages.c)))}
}

func (l *Library) listen(pin *runtime.Pinner) error {
	r := l.function("vkCreateDebugUtilsMessengerEXT").call(number(l.instance),
		address(pin, l.messenger()), 0, address(pin, &l.messager))
	return r.err("listening to the validation layer")
}

func (l *Library) hasValidation() bool {
	var pin runtime.Pinner
	defer pin.Unpin()
	f := l.function("vkEnumerateInstanceLayerProperties")
	n := new(uint32)
	if f.call(address(&pin, n), 0) < 0 {
		return false
	}
	layers := make([]layerProperties, *n)
	if f.call(address(&pin, n), slice(&pin, layers)) < 0 {
		return false
	}
	return slices.ContainsFunc(layers[:min(int(*n), len(layers))], func(p layerProperties) bool {
		return cString(p.name[:]) == validationLayer
	})
}

// Validating says whether the validation layer is loaded.
func (l *Library) Validating() bool { return l.messages != nil }

// Messages returns what the validation layer has reported since the last call.
func (l *Library) Messages() []string {
	if l.messages == nil {
		return nil
	}
	return slices.DeleteFunc(l.messages.take(), ofItself)
}

// ofItself says whether a message is about the layer itself. It follows queues and semaphores on threads of its own. If
// such a thread has seen nothing for 10 s, as when it missed a signal of the host, it reports that, adds that "this is
// most likely a validation bug", and goes on.
func ofItself(message string) bool {
	return strings.Contains(message, "UNASSIGNED-VkSemaphore-state-timeout") ||
		strings.Contains(message, "UNASSIGNED-VkQueue-state-timeout")
}

// Close destroys the instance. Devices must have been closed before; if one hangs and was left, the instance is left,
// too. The loader stays mapped: vulkan-go keeps addresses of its functions for the whole process.
func (l *Library) Close() error {
	if l.devices.Load() > 0 {
		return nil
	}
	if l.messager != 0 {
		l.f.destroyMessenger.word(number(l.instance), l.messager, 0)
		l.messager = 0
	}
	if number(l.instance) != 0 && !l.shared {
		vulkan.DestroyInstance(l.instance, nil)
	}
	l.instance = handle[vulkan.Instance](0)
	if l.messages != nil {
		l.messages.pin.Unpin()
	}
	return nil
}

// cString is the text of a C array of characters, up to its end mark.
func cString(b []byte) string {
	if i := slices.Index(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
