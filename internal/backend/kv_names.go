package backend

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/kvcode"
)

// kvType is a type of K and V that has a name for users: `--kv`. A new one is a line in kvTypes, and its forms.
type kvType struct {
	name string
	k, v Side // k without forms: a type for V alone
}

// Formats of one type for K and V.
var (
	KVF32 = kvTypes[0].kv()
	KVF16 = kvTypes[1].kv()
	KVQ8  = kvTypes[2].kv()
)

var kvTypes = [...]kvType{
	{"f32", Side{Open: Float32{}}, Side{Open: Float32{}}},
	{"f16", Side{Open: Half{}}, Side{Open: Half{}}},
	{"q8", Side{Open: Scaled{Each: KVScaled}}, Side{Open: Scaled{}}},
	{"q5", coded(5, false), coded(5, false)},
	{"q4", coded(4, false), coded(4, false)},
	{"tq4", coded(4, true), coded(4, true)},
	{"tq3", coded(3, true), coded(3, true)},
	{"tq2", Side{}, coded(2, true)},
}

// coded is halves in open blocks, and codes of so many bits in sealed ones.
func coded(bits int, book bool) Side {
	return Side{Open: Half{}, Sealed: Coded{kvcode.Code{Bits: bits, Book: book}}}
}

// kvAliases are llama.cpp's names.
var kvAliases = map[string]string{"q8_0": "q8", "q5_0": "q5", "q4_0": "q4"}

func (t *kvType) kv() KV { return KV{Format: Format{Name: t.name, K: t.k, V: t.v}} }

// KVNames are the names that ParseKV knows; the first ones are the formats' own.
func KVNames() []string { return kvNames(func(t *kvType) bool { return t.k.Open != nil }) }

// KVNamesOfV are those that MixKV knows for V. For K it knows KVNames.
func KVNamesOfV() []string { return kvNames(func(*kvType) bool { return true }) }

func kvNames(has func(*kvType) bool) (names []string) {
	for i := range kvTypes {
		if has(&kvTypes[i]) {
			names = append(names, kvTypes[i].name)
		}
	}
	return append(names, slices.Sorted(maps.Keys(kvAliases))...)
}

// KVList is the formats that have a name, for people; KVListOfV those of V.
func KVList() string { return kvList(KVNames()) }

// KVListOpen is the formats that seal no blocks, for people.
func KVListOpen() string {
	return kvList(kvNames(func(t *kvType) bool { return t.k.Open != nil && t.k.Sealed == nil && t.v.Sealed == nil }))
}

// KVListOfV is the types of V, for people.
func KVListOfV() string { return kvList(KVNamesOfV()) }

func kvList(names []string) string {
	names = names[:len(names)-len(kvAliases)]
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func findKV(name string) *kvType {
	for i := range kvTypes {
		if t := &kvTypes[i]; t.name == name || t.name == kvAliases[name] {
			return t
		}
	}
	return nil
}

// ParseKV finds a format by its name, or by llama.cpp's.
func ParseKV(name string) (KV, error) {
	if t := findKV(name); t != nil && t.k.Open != nil {
		return t.kv(), nil
	}
	return KV{}, fmt.Errorf("KV type %q: want %s", name, KVList())
}

// MixKV is the format of a type for K and one for V, by their names: that of ParseKV where they are the same, else its
// name is both, K/V.
func MixKV(k, v string) (KV, error) {
	of, values := findKV(k), findKV(v)
	switch {
	case of == nil || of.k.Open == nil:
		return KV{}, fmt.Errorf("KV type %q for K: want %s", k, KVList())
	case values == nil:
		return KV{}, fmt.Errorf("KV type %q for V: want %s", v, KVListOfV())
	case of == values:
		return of.kv(), nil
	}
	return KV{Format: Format{Name: of.name + "/" + values.name, K: of.k, V: values.v}}, nil
}

// LayersKV is formats by cache of a program, each a type for K and one for V, by their names. name is that of all.
func LayersKV(name string, types [][2]string) (KV, error) {
	if len(types) == 0 {
		return KV{}, fmt.Errorf("%s: no caches", name)
	}
	var kv KV
	for i, t := range types {
		one, err := MixKV(t[0], t[1])
		if err != nil {
			return KV{}, fmt.Errorf("%s: cache %d: %w", name, i, err)
		}
		kv.Layers = append(kv.Layers, one.Format)
	}
	kv.Format = Format{Name: name, K: kv.Layers[0].K, V: kv.Layers[0].V}
	return kv, nil
}
