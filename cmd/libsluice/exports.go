//go:build cgo

package main

// #include <stdlib.h>
// #include "thread.h"
import "C"

import (
	"context"
	"runtime/debug"
	"sync"
	"unsafe"

	"github.com/sluice-ai/sluice"
)

// opened are the models of the process: C has no other place for them.
var opened models

//export sluice_open
func sluice_open(name, options *C.sluice_char) C.sluice_model {
	o, err := parseOptions(text(options))
	var m *sluice.Model
	if err == nil {
		m, err = sluice.Open(context.Background(), text(name), o)
	}
	if err != nil {
		fail(err)
		return 0
	}
	return C.sluice_model(opened.add(m))
}

//export sluice_generate
func sluice_generate(model C.sluice_model, request *C.sluice_char, take C.sluice_take, user unsafe.Pointer) C.int64_t {
	m, err := opened.find(uint64(model))
	var r sluice.Request
	if err == nil {
		r, err = parseRequest(text(request))
	}
	if err != nil {
		return fail(err)
	}
	tokens := 0
	for p, err := range m.Stream(context.Background(), r) {
		if err != nil {
			return fail(err)
		}
		if tokens = p.Usage.Generated; p.Text != "" && take != nil && !give(take, user, &p) {
			break
		}
	}
	return C.int64_t(tokens)
}

// give calls a function of C with a piece, and returns whether it wants more.
func give(take C.sluice_take, user unsafe.Pointer, p *sluice.Piece) bool {
	kind := C.int(C.SLUICE_TEXT)
	if p.Thought {
		kind = C.SLUICE_THOUGHT
	}
	text := C.CString(p.Text)
	defer C.free(unsafe.Pointer(text))
	return C.sluice_give(take, user, kind, text, C.size_t(len(p.Text))) == 0
}

//export sluice_embed
func sluice_embed(model C.sluice_model, of *C.sluice_char, vector *C.float, room C.size_t) C.int64_t {
	m, err := opened.find(uint64(model))
	var all [][]float32
	if err == nil {
		all, err = m.Embed(context.Background(), text(of))
	}
	if err != nil {
		return fail(err)
	}
	v := all[0]
	if vector != nil && uint64(room) >= uint64(len(v)) {
		copy(unsafe.Slice((*float32)(unsafe.Pointer(vector)), len(v)), v)
	}
	return C.int64_t(len(v))
}

//export sluice_close
func sluice_close(model C.sluice_model) C.int {
	m, err := opened.take(uint64(model))
	if err == nil {
		err = m.Close()
	}
	if err != nil {
		return C.int(fail(err))
	}
	return 0
}

// version is the library's, as C reads it: it stays for ever.
var version = sync.OnceValue(func() *C.char {
	if about, ok := debug.ReadBuildInfo(); ok {
		return C.CString(about.Main.Version)
	}
	return C.CString("(devel)")
})

//export sluice_version
func sluice_version() *C.sluice_char { return version() }

// fail leaves an error to sluice_error, and returns what calls that fail do. It runs on the thread that called.
func fail(err error) C.int64_t {
	text := C.CString(err.Error())
	defer C.free(unsafe.Pointer(text))
	C.sluice_fail(text, C.size_t(len(err.Error())))
	return -1
}

// text is a text of C; empty for NULL.
func text(from *C.sluice_char) string { return C.GoString(from) }
