package jsontext

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// value reads any value as encoding/json would have it.
func value(r *Reader) (any, error) {
	switch r.Next() {
	case '"':
		return r.String()
	case '{':
		out := map[string]any{}
		err := r.Object(func(key string) (err error) {
			out[key], err = value(r)
			return err
		})
		return out, err
	case '[':
		out := []any{}
		err := r.Array(func() error {
			v, err := value(r)
			out = append(out, v)
			return err
		})
		return out, err
	}
	s, err := r.Scalar()
	switch s {
	case "null":
		return nil, err
	case "true", "false":
		return s == "true", err
	}
	return json.Number(s), err
}

func whole(text string, b *Budget) (any, error) {
	r := New(text, 100, b)
	v, err := value(r)
	if err == nil {
		err = r.End()
	}
	return v, err
}

var texts = []string{
	`{}`, `[]`, `{"a":[1,-0.5e+7,{"b":null}],"a":true}`, ` [ "x" , false ] `, `"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`,
	`"\ud800"`, `"\ud800\u0041"`, `"\udc00x"`, `"é😀"`, `0`, `-`, `01`, `1.`, `1e`, `.5`, `+1`, `nul`, `nulls`, `tru`, `"`, `"a`, `"\`,
	`"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"", `[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{1:1}`, `[`, `{`, `]`, ``, `  `,
	`[]]`, `{}x`, "\ufeff{}", `"\u0000"`, "\x00", "[\x00]", "1\x00", `NaN`, `[[[[1]]]]`, `1E5`, `1e+`, `-0`, `-01`, "\u00a01",
}

// TestLikeTheStandardLibrary: it takes what encoding/json takes, and makes the same of it.
func TestLikeTheStandardLibrary(t *testing.T) {
	for _, text := range texts {
		compare(t, text)
	}
}

func compare(t *testing.T, text string) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var want any
	good := json.Valid([]byte(text)) && d.Decode(&want) == nil
	got, err := whole(text, nil)
	var deep *DepthError
	if errors.As(err, &deep) {
		return
	}
	require.Equal(t, good, err == nil, "%q: %v", text, err)
	r := New(text, 100, nil)
	raw, skipped := r.Raw()
	if skipped == nil {
		skipped = r.End()
	}
	require.Equal(t, good, skipped == nil, "%q: %v", text, skipped)
	if good {
		require.Equal(t, want, got, "%q", text)
		require.Equal(t, strings.Trim(text, " \t\r\n"), raw)
		return
	}
	var syntax *SyntaxError
	require.ErrorAs(t, err, &syntax)
	require.LessOrEqual(t, syntax.At, len(text))
}

func FuzzReader(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if utf8.ValidString(text) {
			compare(t, text)
		}
	})
}

// TestBudget: values are counted while they are read, those that are skipped are not, and the work stops when asked.
func TestBudget(t *testing.T) {
	b := &Budget{Values: 5}
	_, err := whole(`{"a":[1,2]}`, b)
	require.NoError(t, err)
	require.Zero(t, b.Values)
	_, err = whole(`{"a":[1,2]}`, &Budget{Values: 4})
	require.ErrorIs(t, err, ErrTooMany)
	_, err = New(`{"a":[1,2]}`, 9, &Budget{}).Raw()
	require.NoError(t, err)
	enough := errors.New("enough")
	for _, text := range []string{
		`[` + strings.Repeat(`1,`, 1<<20) + `1]`, `"` + strings.Repeat(`a`, 1<<20) + `"`, `[` + strings.Repeat(`{"a":[]},`, 1<<20) + `1]`,
	} {
		asked := 0
		b = &Budget{Values: 1 << 30, Stop: func() error {
			if asked++; asked == 3 {
				return enough
			}
			return nil
		}}
		_, err = whole(text, b)
		require.ErrorIs(t, err, enough)
		asked = 0
		r := New(text, 100, b)
		_, err = r.Raw()
		require.ErrorIs(t, err, enough)
		require.LessOrEqual(t, r.At(), 4*askEvery)
	}
}

func TestDepth(t *testing.T) {
	_, err := whole(strings.Repeat("[", 100)+strings.Repeat("]", 100), nil)
	require.NoError(t, err)
	_, err = whole(strings.Repeat("[", 101), nil)
	require.Equal(t, &DepthError{100, 100}, err)
	_, err = New(strings.Repeat(`{"a":`, 101), 100, nil).Raw()
	require.Equal(t, &DepthError{500, 100}, err)
}

// TestLongStringsAreShared: a long string without escapes costs nothing, a short one does not keep the text.
func TestLongStringsAreShared(t *testing.T) {
	text := `"` + strings.Repeat("a", 1<<20) + `"`
	require.Zero(t, testing.AllocsPerRun(10, func() {
		if s, err := (&Reader{text: text}).String(); err != nil || len(s) != 1<<20 {
			t.Error(err)
		}
	}))
}
