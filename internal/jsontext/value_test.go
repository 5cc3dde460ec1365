package jsontext

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plain is a value as encoding/json would have it.
func plain(v Value) any {
	switch v := v.(type) {
	case Bool:
		return bool(v)
	case Number:
		return json.Number(v)
	case String:
		return string(v)
	case List:
		out := []any{}
		for _, item := range v {
			out = append(out, plain(item))
		}
		return out
	case *Object:
		out := map[string]any{}
		for key, member := range v.All() {
			out[key] = plain(member)
		}
		return out
	}
	return nil
}

// TestValues: a text is read as the standard library reads it, or refused as a Reader does.
func TestValues(t *testing.T) {
	for _, text := range texts {
		want, fault := whole(text, nil)
		got, err := Parse(text, nil)
		if fault != nil {
			require.EqualError(t, err, "JSON: "+fault.Error(), "%q", text)
			require.Nil(t, got)
			continue
		}
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, plain(got), "%q", text)
	}
	for text, want := range map[string]string{
		"\"\xff\"":                `JSON: it is not UTF-8`,
		strings.Repeat("[", 2000): `JSON: byte 1000: nested deeper than 1000 levels`,
		"[" + strings.Repeat("9", 4301): "JSON: byte 4302: an integer that is too long: 4301 digits, " +
			"at most 4300 are accepted",
	} {
		_, err := Parse(text, nil)
		require.EqualError(t, err, want)
	}
	long := strings.Repeat("9", 4301)
	for _, text := range []string{long[1:], long + ".5", long + "e1", "-0", "1.50"} {
		v, err := Parse(text, nil)
		require.NoError(t, err)
		require.Equal(t, Number(text), v)
	}
	b := &Budget{Values: 1}
	_, err := Parse(`[1,2]`, b)
	require.True(t, b.Spent(err))
}

// TestObject: members keep their order, however many there are; one that comes again has its last value, at its first
// place.
func TestObject(t *testing.T) {
	for _, n := range []int{0, 1, smallObject, smallObject + 1, 100} {
		var text strings.Builder
		var want []string
		for i := range 2 * n {
			key := fmt.Sprint("k", n-i%max(n, 1))
			fmt.Fprintf(&text, `"%s":%d,`, key, i)
			if i < n {
				want = append(want, fmt.Sprint(key, "=", n+i))
			}
		}
		v, err := Parse("{"+strings.TrimSuffix(text.String(), ",")+"}", nil)
		require.NoError(t, err)
		o := v.(*Object)
		require.Equal(t, want, spelled(o))
		require.Equal(t, n, o.Len())
		more := o.With("k1", String("x")).With("more", Null{})
		require.Equal(t, want, spelled(o), "a copy is another object")
		require.Equal(t, "x", more.Text("k1"))
		require.True(t, more.Has("more") && !Given(more.Get("more")) && !o.Has("more"))
		if n > 0 {
			want[n-1] = "k1=x"
		} else {
			want = append(want, "k1=x")
		}
		require.Equal(t, append(want, "more={}"), spelled(more))
	}
	var none *Object
	require.True(t, none.Len() == 0 && !none.Has("a") && none.Get("a") == nil && none.Text("a") == "" && none.Object("a") == nil)
	require.Empty(t, spelled(none))
	require.Equal(t, []string{"a={}"}, spelled(none.With("a", Null{})))
	require.False(t, Given(nil))
}

func spelled(o *Object) (all []string) {
	for key, v := range o.All() {
		all = append(all, fmt.Sprint(key, "=", v))
	}
	return all
}
