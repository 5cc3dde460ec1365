//go:build cgo && linux

package vk

/*
#include <stdint.h>
#include <string.h>

typedef uint64_t u64;
typedef u64 (*function)(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64);

typedef struct {
	u64 function;
	u64 arg[10];
} operation;

// Functions that take fewer arguments ignore the others: so say the calling conventions of x86-64 and arm64.
static u64 sluice_call(u64 f, u64 *a) {
	return ((function)f)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
}

static void sluice_batch(operation *ops, u64 n) {
	for (u64 i = 0; i < n; i++) {
		sluice_call(ops[i].function, ops[i].arg);
	}
}

// What validation says is kept as text, cut where the room ends. The layer calls from the thread that called Vulkan;
// two threads may write at once, so space is taken by an atomic addition.
typedef struct {
	u64 used;
	char text[1 << 16];
} messages;

typedef struct {
	int32_t type; void *next; uint32_t flags; const char *id; int32_t number; const char *text;
} message;

static uint32_t sluice_message(uint32_t severity, uint32_t types, const message *m, messages *all) {
	u64 n = strlen(m->text);
	u64 at = __atomic_fetch_add(&all->used, n + 1, __ATOMIC_RELAXED);
	if (at + n + 1 <= sizeof all->text) {
		memcpy(all->text + at, m->text, n);
		all->text[at + n] = '\n';
	}
	return 0;
}

static u64 sluice_message_function(void) { return (u64)&sluice_message; }

#cgo noescape sluice_call
#cgo nocallback sluice_call
#cgo noescape sluice_batch
#cgo nocallback sluice_batch
*/
import "C"

import (
	"runtime"
	"strings"
	"unsafe"
)

// function is the address of a Vulkan function.
type function uint64

// call calls a function whose arguments are integers and addresses, ten at most. Memory that it reads or writes must be
// pinned.
func (f function) call(args ...uint64) Result {
	var a [10]uint64
	copy(a[:], args)
	return Result(int32(C.sluice_call(C.u64(f), (*C.u64)(&a[0]))))
}

// word is call for functions that return 64 bits, or nothing.
func (f function) word(args ...uint64) uint64 {
	var a [10]uint64
	copy(a[:], args)
	return uint64(C.sluice_call(C.u64(f), (*C.u64)(&a[0])))
}

// operation is one call of a batch.
type operation struct {
	f    function
	args [10]uint64
}

// batch makes all calls in order, in one call of cgo.
func batch(ops []operation) {
	if len(ops) > 0 {
		C.sluice_batch((*C.operation)(unsafe.Pointer(&ops[0])), C.u64(len(ops)))
	}
}

// address pins what p points to until the pinner lets go, and returns its address for Vulkan.
func address[T any](pin *runtime.Pinner, p *T) uint64 {
	if p == nil {
		return 0
	}
	pin.Pin(p)
	return uint64(uintptr(unsafe.Pointer(p)))
}

// slice is address of a slice's first element; 0 for an empty one.
func slice[T any](pin *runtime.Pinner, s []T) uint64 {
	if len(s) == 0 {
		return 0
	}
	return address(pin, &s[0])
}

// text is the address of a C string.
func text(pin *runtime.Pinner, s string) uint64 { return slice(pin, append([]byte(s), 0)) }

// texts is the address of an array of C strings.
func texts(pin *runtime.Pinner, all []string) uint64 {
	list := make([]uint64, len(all))
	for i, s := range all {
		list[i] = text(pin, s)
	}
	return slice(pin, list)
}

// messages is where the validation layer's callback writes. It is memory that only C writes, so it must stay pinned
// for as long as the callback is registered.
type messages struct {
	c   *C.messages
	pin runtime.Pinner
}

func newMessages() *messages {
	m := &messages{c: new(C.messages)}
	m.pin.Pin(m.c)
	return m
}

// take returns what was said since the last call, line by line.
func (m *messages) take() []string {
	used := min(int(m.c.used), len(m.c.text))
	said := C.GoStringN(&m.c.text[0], C.int(used))
	m.c.used = 0
	return strings.FieldsFunc(said, func(r rune) bool { return r == '\n' || r == 0 })
}

func messageFunction() uint64 { return uint64(C.sluice_message_function()) }
