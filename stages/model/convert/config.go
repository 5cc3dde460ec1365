package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// object is a JSON object with lookups that forgive a missing key and null, and nothing else: the fault of a value of
// another type is kept and reported once, with all others.
type object struct {
	values map[string]any
	faults *[]error
	name   string // of the file, for messages
}

// parseObject reads a JSON object. Python writes infinite numbers as words; they become null.
func parseObject(name string, text []byte) (object, error) {
	o := object{values: map[string]any{}, faults: new([]error), name: name}
	if len(text) == 0 {
		return o, nil
	}
	d := json.NewDecoder(bytes.NewReader(withoutInfinity(text)))
	d.UseNumber()
	var other *json.UnmarshalTypeError
	switch err := d.Decode(&o.values); {
	case errors.As(err, &other):
		return o, fmt.Errorf("%s: it holds a JSON %s, want an object", name, other.Value)
	case err != nil:
		return o, fmt.Errorf("%s: %w: is the download complete?", name, err)
	}
	return o, nil
}

// withoutInfinity replaces Infinity, -Infinity and NaN outside of texts by null.
func withoutInfinity(text []byte) []byte {
	if !bytes.Contains(text, []byte("Infinity")) && !bytes.Contains(text, []byte("NaN")) {
		return text
	}
	var out []byte
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
			c = text[i]
		case c == '"':
			quoted = !quoted
		case !quoted:
			if n := infinity(text[i:]); n > 0 {
				out = append(out, "null"...)
				i += n - 1
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

func infinity(text []byte) int {
	for _, word := range []string{"-Infinity", "Infinity", "NaN"} {
		if bytes.HasPrefix(text, []byte(word)) {
			return len(word)
		}
	}
	return 0
}

func (o object) faultf(format string, args ...any) {
	fault := fmt.Errorf("%s: "+format, append([]any{o.name}, args...)...)
	said := func(other error) bool { return other.Error() == fault.Error() } // the same value was looked up again
	if !slices.ContainsFunc(*o.faults, said) {
		*o.faults = append(*o.faults, fault)
	}
}

// get returns the value of the first of some keys that is there, and which that is.
func (o object) get(keys ...string) (any, string) {
	for _, k := range keys {
		if v := o.values[k]; v != nil {
			return v, k
		}
	}
	return nil, ""
}

func (o object) has(key string) bool { return o.values[key] != nil }

// object is an object inside, empty if it is not there.
func (o object) object(key string) object {
	inner := object{values: map[string]any{}, faults: o.faults, name: o.name}
	if v, ok := o.values[key].(map[string]any); ok {
		inner.values = v
	}
	return inner
}

const mostInt = math.MaxInt32 // sizes and counts, products of a few of which fit an int64

// int reads a count; 0 if none of the keys is there.
func (o object) int(keys ...string) int {
	v, key := o.get(keys...)
	if v == nil {
		return 0
	}
	number, ok := v.(json.Number)
	f, err := number.Float64()
	if !ok || err != nil || f != math.Trunc(f) || f < 0 || f > mostInt {
		o.faultf("%s is %.40v, want a number from 0 to %d", key, v, mostInt)
		return 0
	}
	return int(f)
}

// intOr is int with a default.
func (o object) intOr(otherwise int, keys ...string) int {
	if v, _ := o.get(keys...); v == nil {
		return otherwise
	}
	return o.int(keys...)
}

// need is int for what must be there, and above 0.
func (o object) need(keys ...string) int {
	n := o.int(keys...)
	if v, _ := o.get(keys...); n < 1 {
		if v == nil || n == 0 && isZero(v) {
			o.faultf("%s is missing or 0, want a number above 0", keys[0])
		}
		return 1
	}
	return n
}

func isZero(v any) bool {
	n, ok := v.(json.Number)
	f, err := n.Float64()
	return ok && err == nil && f == 0
}

// float reads a number.
func (o object) float(keys ...string) (float64, bool) {
	v, key := o.get(keys...)
	if v == nil {
		return 0, false
	}
	number, ok := v.(json.Number)
	f, err := number.Float64()
	if !ok || err != nil {
		o.faultf("%s is %.40v, want a number", key, v)
		return 0, false
	}
	return f, true
}

func (o object) floatOr(otherwise float64, keys ...string) float64 {
	if f, ok := o.float(keys...); ok {
		return f
	}
	return otherwise
}

// string reads a text, empty if it is not there or something else.
func (o object) string(keys ...string) string {
	v, _ := o.get(keys...)
	s, _ := v.(string)
	return s
}

// truth reads a truth value; set says whether it is there.
func (o object) truth(key string) (value, set bool) {
	value, set = o.values[key].(bool)
	return value, set
}

// list reads a list, nil if it is not there or something else.
func (o object) list(key string) []any {
	l, _ := o.values[key].([]any)
	return l
}

// strings reads a list of texts.
func (o object) strings(key string) []string {
	var out []string
	for _, v := range o.list(key) {
		s, ok := v.(string)
		if !ok {
			o.faultf("%s has %.40v, want texts", key, v)
			return nil
		}
		out = append(out, s)
	}
	return out
}

// numbers reads a list of numbers.
func (o object) numbers(key string) []float64 {
	var out []float64
	for _, v := range o.list(key) {
		n, ok := v.(json.Number)
		f, err := n.Float64()
		if !ok || err != nil {
			o.faultf("%s has %.40v, want numbers", key, v)
			return nil
		}
		out = append(out, f)
	}
	return out
}

// err reports all faults.
func (o object) err() error { return errors.Join(*o.faults...) }

// modelConfig reads config.json. The text model of one that also sees or hears stands in an object of its own.
func modelConfig(text []byte) (object, error) {
	o, err := parseObject("config.json", text)
	if err != nil {
		return o, err
	}
	if len(o.values) == 0 {
		return o, errors.New("config.json: is missing or empty: want the folder of a model")
	}
	for _, key := range []string{"text_config", "llm_config", "language_config", "transformer_layer_config"} {
		for k, v := range o.object(key).values {
			if k != "architectures" {
				o.values[k] = v
			}
		}
	}
	return o, nil
}
