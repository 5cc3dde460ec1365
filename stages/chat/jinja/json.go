package jinja

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/internal/jsontext"
)

// Of converts a JSON value to what templates see: keys keep their order, integers are of any size, 1 is not 1.0. nil
// becomes None.
func Of(v jsontext.Value) Value {
	switch v := v.(type) {
	case jsontext.Bool:
		return Bool(v)
	case jsontext.Number:
		return numberOf(string(v))
	case jsontext.String:
		return Str(v)
	case jsontext.List:
		items := make([]Value, len(v))
		for i, item := range v {
			items[i] = Of(item)
		}
		return &List{Items: items}
	case *jsontext.Object:
		d := &Dict{}
		for key, member := range v.All() {
			d.Set(key, Of(member))
		}
		return d
	}
	return None{}
}

func numberOf(s string) Value {
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return Int(n)
		}
		if n, ok := new(big.Int).SetString(s, 10); ok {
			return normInt(n)
		}
	}
	f, _ := strconv.ParseFloat(s, 64) // too large: infinity, as in Python
	return Float(f)
}

// ToJSON encodes a value as it is read: keys in order, non-ASCII characters as they are.
func ToJSON(v Value) ([]byte, error) {
	limits := DefaultLimits()
	r := &run{limits: limits, steps: limits.Steps, memory: limits.Memory}
	out, err := toJSON(r, v, make([]Value, 4))
	if err != nil {
		return nil, err
	}
	s, _ := text(out)
	return []byte(s), nil
}
