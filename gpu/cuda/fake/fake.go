//go:build linux && (amd64 || arm64) && (cgo || cuda)

// Package fake is a libcuda.so.1 that computes on the processor, for tests: CUDA's kernels, compiled for the host,
// behind the functions of NVIDIA's driver that gpu/cuda calls. A C++ compiler builds it where a test first wants it;
// what was built is kept in the user's cache folder.
package fake

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/sluice-ai/sluice/gpu/cuda/kernels/source"
	"github.com/sluice-ai/sluice/internal/testref"
)

// flags are the flags of the compiler.
var flags = []string{"-x", "c++", "-std=c++17", "-O1", "-g1", "-fPIC", "-ffp-contract=off",
	"-fno-strict-aliasing", "-pthread", "-DSLUICE_HOST", "-Wall", "-Wno-unused-function"}

// compilers are tried in this order.
var compilers = []string{"g++", "clang++", "clang++-19", "c++"}

// built builds the library, once in a process.
var built = sync.OnceValues(build)

// Library is the path of the library, which is built first. Without a C++ compiler, or its sources, a test is skipped,
// or fails in CI.
func Library(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		testref.Missing(t, "c++", "the fake driver cannot be built: %v", err)
	}
	return path
}

func build() (string, error) {
	compiler := ""
	for _, c := range compilers {
		if path, err := exec.LookPath(c); err == nil && compiler == "" {
			compiler = path
		}
	}
	if compiler == "" {
		return "", fmt.Errorf("there is none of %s", strings.Join(compilers, ", "))
	}
	version, err := exec.Command(compiler, "--version").Output()
	if err != nil {
		return "", err
	}
	_, here, _, _ := runtime.Caller(0)
	objects, err := list(filepath.Dir(here), source.Hash(compiler, string(version)))
	if err != nil {
		return "", err
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		folder = os.TempDir()
	}
	folder = filepath.Join(folder, "sluice-test", "cuda")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	return link(compiler, folder, objects)
}

// object is one file to compile, with its flags, and a hash of all that it is compiled from.
type object struct {
	file  string
	flags []string
	hash  string
}

// list lists the library's own sources, and one object for each module of kernels.
func list(folder, compiler string) (all []object, err error) {
	own, err := filepath.Glob(filepath.Join(folder, "src", "*.cc"))
	if err != nil || len(own) == 0 {
		return nil, fmt.Errorf("its sources are not in %s: %w", folder, cmp.Or(err, fs.ErrNotExist))
	}
	texts := []string{compiler, strings.Join(flags, " ")}
	headers, err := filepath.Glob(filepath.Join(folder, "src", "*.h"))
	if err != nil {
		return nil, err
	}
	lib, err := filepath.Glob(filepath.Join(folder, "..", "kernels", "lib", "*st.cuh"))
	if err != nil {
		return nil, err
	}
	for _, h := range append(headers, lib...) {
		text, err := os.ReadFile(h)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	for _, f := range own {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		all = append(all, object{file: f, hash: source.Hash(append(texts, f, string(text))...)})
	}
	units, err := source.Find(filepath.Join(folder, "..", "kernels"))
	for _, u := range units {
		all = append(all, object{u.File, append(u.Macros, fmt.Sprintf("-DSLUICE_MODULE=%q", u.Name)),
			source.Hash(append(texts, u.File, u.Name, u.Hash())...)})
	}
	return all, err
}

// link compiles the objects that are not there yet, and links all.
func link(compiler, folder string, objects []object) (string, error) {
	var hashes []string
	for _, o := range objects {
		hashes = append(hashes, o.hash)
	}
	path := filepath.Join(folder, source.Hash(hashes...)+".so")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	var group sync.WaitGroup
	faults, tokens := make([]error, len(objects)), make(chan bool, runtime.GOMAXPROCS(0))
	files := make([]string, len(objects))
	for i, o := range objects {
		files[i] = filepath.Join(folder, o.hash+".o")
		group.Go(func() {
			tokens <- true
			defer func() { <-tokens }()
			if _, err := os.Stat(files[i]); err != nil {
				faults[i] = run(compiler, files[i], append(append(append([]string{}, flags...), o.flags...), "-c", o.file))
			}
		})
	}
	group.Wait()
	for _, err := range faults {
		if err != nil {
			return "", err
		}
	}
	return path, run(compiler, path, slices.Concat(files, []string{"-shared", "-pthread", "-Wl,-z,noexecstack"}))
}

// run runs the compiler. Other processes may want the same file: so it is written under another name, and renamed.
func run(compiler, to string, args []string) error {
	temp := fmt.Sprintf("%s.%d", to, os.Getpid())
	defer os.Remove(temp)
	if said, err := exec.Command(compiler, append(args, "-o", temp)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", compiler, err, said)
	}
	return os.Rename(temp, to)
}

// Kernels runs single kernels of the library, on any memory: for tests of a kernel that need no device.
type Kernels struct {
	t   testing.TB
	run uintptr
}

// Open opens the library for kernels.
func Open(t testing.TB) *Kernels {
	t.Helper()
	return &Kernels{t, symbol(t, "sluiceFakeRun")}
}

func symbol(t testing.TB, name string) uintptr {
	t.Helper()
	lib, err := purego.Dlopen(Library(t), purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	f, err := purego.Dlsym(lib, name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Run runs a kernel of a module over a grid of blocks. args is a structure in the kernel's layout, with addresses of
// pinned Go memory. The test fails if threads of a block do not meet at a barrier.
func Run[T any](k *Kernels, module, kernel string, grid [3]uint32, threads, shared int, args *T) {
	k.t.Helper()
	var pin runtime.Pinner
	defer pin.Unpin()
	said := make([]byte, 1024)
	names := [2][]byte{append([]byte(module), 0), append([]byte(kernel), 0)}
	pin.Pin(&said[0])
	pin.Pin(&names[0][0])
	pin.Pin(&names[1][0])
	pin.Pin(&grid)
	pin.Pin(args)
	r, _, _ := purego.SyscallN(k.run, address(&names[0][0]), address(&names[1][0]), address(&grid[0]), uintptr(threads),
		uintptr(shared), address(args), unsafe.Sizeof(*args), address(&said[0]), uintptr(len(said)))
	if r != 0 {
		text, _, _ := strings.Cut(string(said), "\x00")
		k.t.Fatalf("%s.%s: %s", module, kernel, text)
	}
}

// Driver causes faults in the emulated driver, for the whole process. They end with the test.
type Driver struct{ t testing.TB }

// Faults returns what causes faults in the driver until the end of the test.
func Faults(t testing.TB) *Driver {
	t.Helper()
	d := &Driver{t}
	t.Cleanup(func() {
		d.Go()
		d.Memory(0)
	})
	return d
}

func (d *Driver) call(name string, args ...uintptr) {
	d.t.Helper()
	purego.SyscallN(symbol(d.t, name), args...)
}

// Fail makes one call of a function, after some others of it, return a result.
func (d *Driver) Fail(function string, after, result int) {
	d.t.Helper()
	name := append([]byte(function), 0)
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&name[0])
	d.call("sluiceFakeFail", address(&name[0]), uintptr(after), uintptr(result))
}

// Break ends the context with an error.
func (d *Driver) Break(result int) { d.call("sluiceFakeBreak", uintptr(result)) }

// Stop makes streams stop until Go.
func (d *Driver) Stop() { d.call("sluiceFakeStop", 1) }

// Go lets streams go on.
func (d *Driver) Go() { d.call("sluiceFakeStop", 0) }

// Memory resets the card, with some bytes of memory; 0: as many as usual.
func (d *Driver) Memory(bytes uint64) { d.call("sluiceFakeReset", uintptr(bytes)) }

func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// Address is the address of a slice as kernels take it, pinned until the pinner lets go; 0 for an empty one.
func Address[T any](pin *runtime.Pinner, s []T) uint64 {
	if len(s) == 0 {
		return 0
	}
	pin.Pin(&s[0])
	return uint64(address(&s[0]))
}
