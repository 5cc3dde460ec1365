package jinja

import (
	"iter"
	"math"
	"slices"
	"strconv"
)

// Dict is a Python dict: any hashable key, insertion order. The zero value is empty.
type Dict struct {
	keys   []Value
	values []Value
	index  map[hash]int // position of each key; nil while the dict is small
}

// hash identifies a key: equal keys of any type (1, 1.0, True) have the same one.
type hash struct {
	kind byte
	text string
	ptr  any // identity of keys that compare by identity
}

// smallDict is the size up to which a linear search is faster than a map.
const smallDict = 8

// Len counts the entries.
func (d *Dict) Len() int { return len(d.keys) }

// Set adds or replaces the value of a string key.
func (d *Dict) Set(key string, v Value) {
	d.put(Str(key), hash{kind: 's', text: key}, v)
}

// Get returns the value of a string key.
func (d *Dict) Get(key string) (Value, bool) {
	if i := d.find(hash{kind: 's', text: key}); i >= 0 {
		return d.values[i], true
	}
	return nil, false
}

func (d *Dict) find(h hash) int {
	if d.index != nil {
		if i, ok := d.index[h]; ok {
			return i
		}
		return -1
	}
	for i, k := range d.keys {
		if s, ok := k.(Str); ok && h.kind == 's' {
			if string(s) == h.text {
				return i
			}
			continue
		}
		if kh, err := hashOf(k, 0); err == nil && kh == h {
			return i
		}
	}
	return -1
}

func (d *Dict) put(k Value, h hash, v Value) {
	if i := d.find(h); i >= 0 {
		d.values[i] = v
		return
	}
	d.keys = append(d.keys, k)
	d.values = append(d.values, v)
	switch {
	case d.index != nil:
		d.index[h] = len(d.keys) - 1
	case len(d.keys) > smallDict:
		d.reindex()
	}
}

// lookup is d.get(k), ok telling whether there is one; an unhashable key is an error.
func (r *run) lookup(d *Dict, k Value) (v Value, ok bool, err error) {
	h, err := r.hash(k)
	if err != nil {
		return nil, false, err
	}
	if i := d.find(h); i >= 0 {
		return d.values[i], true, nil
	}
	return nil, false, nil
}

// store is d[k] = v.
func (r *run) store(d *Dict, k, v Value) error {
	h, err := r.hash(k)
	if err == nil {
		d.put(k, h, v)
	}
	return err
}

// hash pays for reading a key.
func (r *run) hash(k Value) (hash, error) {
	h, err := hashOf(k, 0)
	if err != nil {
		return h, err
	}
	return h, r.scan(len(h.text))
}

func (d *Dict) copy() *Dict {
	c := &Dict{keys: slices.Clone(d.keys), values: slices.Clone(d.values)}
	c.reindex()
	return c
}

// maxTupleKey bounds the nesting of tuples used as keys; their text is built anew for each look-up.
const maxTupleKey = 4

func hashOf(v Value, depth int) (hash, error) {
	switch x := v.(type) {
	case Str:
		return hash{kind: 's', text: string(x)}, nil
	case markup:
		return hash{kind: 's', text: string(x)}, nil
	case None:
		return hash{kind: 'n'}, nil
	case Bool:
		return hash{kind: 'i', text: strconv.Itoa(int(boolInt(x)))}, nil
	case Int:
		return hash{kind: 'i', text: strconv.FormatInt(int64(x), 10)}, nil
	case bigInt:
		return hash{kind: 'i', text: x.n.String()}, nil
	case Float:
		if f := float64(x); f == math.Trunc(f) && !math.IsInf(f, 0) {
			return hash{kind: 'i', text: strconv.FormatFloat(f+0, 'f', 0, 64)}, nil
		}
		return hash{kind: 'f', text: floatRepr(float64(x))}, nil
	case byteText:
		return hash{kind: 'b', text: string(x)}, nil
	case Tuple:
		return tupleHash(x, depth)
	case *rangeValue:
		return hash{kind: 'r', ptr: *x}, nil
	case *undefined:
		return hash{kind: 'u'}, nil
	case *List, *Dict, *view:
		return hash{}, fail(Type, "unhashable type: '%s'", v.class())
	}
	return hash{kind: 'p', ptr: v}, nil // functions and the like: pointers, compared by identity
}

func tupleHash(t Tuple, depth int) (hash, error) {
	if depth >= maxTupleKey {
		return hash{}, fail(Limit, "a tuple nested deeper than %d as a key", maxTupleKey)
	}
	h := hash{kind: 't'}
	var b []byte
	for _, v := range t {
		e, err := hashOf(v, depth+1)
		if err != nil {
			return hash{}, err
		}
		if e.ptr != nil {
			return hash{}, fail(Limit, "a tuple with a %s as a key", v.class())
		}
		b = append(b, e.kind)
		b = strconv.AppendInt(b, int64(len(e.text)), 10)
		b = append(b, ':')
		b = append(b, e.text...)
	}
	h.text = string(b)
	return h, nil
}

// reindex builds the index of a dict whose keys were set directly.
func (d *Dict) reindex() {
	d.index = nil
	if len(d.keys) <= smallDict {
		return
	}
	d.index = make(map[hash]int, 2*len(d.keys))
	for i, k := range d.keys {
		h, _ := hashOf(k, 0) // it was a key already
		d.index[h] = i
	}
}

// All walks the entries with string keys, in order.
func (d *Dict) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for i, k := range d.keys {
			if s, ok := text(k); ok && !yield(s, d.values[i]) {
				return
			}
		}
	}
}
