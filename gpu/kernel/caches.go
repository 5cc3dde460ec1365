package kernel

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/kvcode"
)

// cacheForms lists the forms of K and of V that GPU kernels know, by the number that stands for each in kernels.
var cacheForms = [...]struct{ k, v backend.Form }{
	1: {backend.Half{}, backend.Half{}},
	2: {backend.Float32{}, backend.Float32{}},
	3: {backend.Scaled{Each: backend.KVScaled}, backend.Scaled{}},
	4: both(5, false),
	5: both(4, false),
	6: both(4, true),
	7: both(3, true),
	8: {nil, coded(2, true)},
}

func coded(bits int, book bool) backend.Form {
	return backend.Coded{Code: kvcode.Code{Bits: bits, Book: book}}
}

func both(bits int, book bool) (f struct{ k, v backend.Form }) {
	f.k, f.v = coded(bits, book), coded(bits, book)
	return f
}

// KeyKind is the number that stands for a form of K in kernels; 0: there are no kernels for it.
func KeyKind(f backend.Form) uint32 {
	return kind(f, func(i int) backend.Form { return cacheForms[i].k })
}

// ValueKind is the number that stands for a form of V.
func ValueKind(f backend.Form) uint32 {
	return kind(f, func(i int) backend.Form { return cacheForms[i].v })
}

func kind(f backend.Form, of func(i int) backend.Form) uint32 {
	for i := 1; f != nil && i < len(cacheForms); i++ {
		if of(i) == f {
			return uint32(i)
		}
	}
	return 0
}

// CacheKind is the number that stands for a cache format that has the same for K and V, and seals no blocks; 0: it is
// another one.
func CacheKind(f backend.Format) uint32 {
	if k := KeyKind(f.K.Open); !f.Seals() && k == ValueKind(f.V.Open) {
		return k
	}
	return 0
}

// KnownCache returns an error if there are no kernels for a cache format on a GPU whose API is called api.
func KnownCache(api string, f backend.Format) error {
	for _, kind := range []uint32{KeyKind(f.K.Open), KeyKind(f.K.Kept()), ValueKind(f.V.Open), ValueKind(f.V.Kept())} {
		if kind == 0 {
			return fmt.Errorf("caches in %s have no kernels on %s: keep them in %s, or use --device cpu: %w", f, api,
				backend.KVList(), errors.ErrUnsupported)
		}
	}
	return nil
}

// Codes is how codes of one head's K, or V, are turned into levels: what kernels are told of a form.
type Codes struct {
	Rotation *kvcode.Rotation
	Levels   uint64  // of a book: the positive ones, bytes in ascending order
	Unit     float32 // of a book: what a level of 1 is, of a row whose squares have the mean 1
}

// CodesOf returns what kernels are told of a form for rows of so many features; ok is false if it has no codes.
func CodesOf(f backend.Form, features int) (c Codes, ok bool) {
	x, ok := f.(backend.Coded)
	if !ok {
		return Codes{Rotation: &kvcode.Rotation{Power: 1}}, false
	}
	c.Rotation = kvcode.RotationOf(features)
	if x.Book {
		levels, n := x.Levels(features), 1<<(x.Bits-1)
		for i, level := range levels[n : 2*n] {
			c.Levels |= uint64(level) << (8 * i)
		}
		c.Unit = float32(x.Unit(features))
	}
	return c, true
}

// keyRunBytes is the memory of K of one KV head in one block. Codes are in planes of 4 bits, or 2, and of one, each in
// whole words of 32 bits for a position.
func keyRunBytes(f backend.Form, features int) int {
	c, ok := f.(backend.Coded)
	if !ok {
		return f.Bytes(features)
	}
	words, wide, narrow := features/32*c.Bits, c.Bits&^1, c.Bits&1
	if rest := features % 32; rest > 0 {
		words += (rest*wide+31)/32 + narrow
	}
	return backend.BlockSize * (4*words + 2*c.Scales(features))
}

// valueRunBytes is that of V, with the largest of each 64 scales, in whole 16 bytes.
func valueRunBytes(f backend.Form, features int) int {
	c, ok := f.(backend.Coded)
	if !ok {
		return f.Bytes(features)
	}
	return (f.Bytes(features) + 2*c.Scales(features) + 15) &^ 15
}
