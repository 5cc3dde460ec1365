package safetensors

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
)

// file is a safetensors file with so many bytes of data.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func parse(b []byte) ([]element.Stored, error) { return Parse(bytes.NewReader(b), int64(len(b))) }

func TestParse(t *testing.T) {
	b := file(`{"__metadata__": {"format": "pt"}, "b": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [4, 16]},
		"a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}, "none": {"dtype": "U8", "shape": [0], "data_offsets": [16, 16]}}`, 16)
	tensors, err := parse(b)
	require.NoError(t, err)
	begin := int64(len(b) - 16)
	require.Equal(t, []element.Stored{
		{Tensor: element.Tensor{Name: "a", Type: element.F32, Shape: []int{}}, Offset: begin, Size: 4},
		{Tensor: element.Tensor{Name: "b", Type: element.BF16, Shape: []int{2, 3}}, Offset: begin + 4, Size: 12},
		{Tensor: element.Tensor{Name: "none", Type: element.U8, Shape: []int{0}}, Offset: begin + 16},
	}, tensors)
}

// broken are ways in which a file can lie, with what is said of them.
var broken = []struct {
	name string
	data []byte
	want string
}{
	{"short", []byte("1234567"), "has 7 bytes, fewer than the 8"},
	{"a header past the end", binary.LittleEndian.AppendUint64(nil, 100), "its header would have 100 bytes, the file has 8"},
	{"a header of half the world", binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "its header would have 18446744073709551615"},
	{"no JSON", file("]", 0), "header: invalid character"},
	{"no object", file("[]", 0), "header: json: cannot unmarshal array"},
	{"twice", file(one("F32", "[1]", "[0,4]")[:len(one("F32", "[1]", "[0,4]"))-1]+`,"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4),
		"lists a tensor twice"},
	{"unknown type", file(one("F3", "[1]", "[0,4]"), 4), `tensor "a": dtype "F3" is not known`},
	{"negative shape", file(one("F32", "[-1]", "[0,4]"), 4), "shape is [-1]: no dimension is negative"},
	{"overflow", file(one("F32", "[4611686018427387904,16]", "[0,4]"), 4), "more elements than any disk"},
	{"one offset", file(one("F32", "[1]", "[0]"), 4), "data_offsets are [0], want two that ascend"},
	{"descending offsets", file(one("F32", "[1]", "[4,0]"), 4), "data_offsets are [4 0]"},
	{"negative offset", file(one("F32", "[1]", "[-4,0]"), 4), "data_offsets are [-4 0]"},
	{"wrong size", file(one("F32", "[2]", "[0,4]"), 4), "its data has 4 bytes, and F32 of shape [2] takes 8"},
	{"past the end", file(one("F32", "[1]", "[4,8]"), 4), "needs bytes up to 8 of the data, the file has 4"},
	{"overlap", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}}`, 4),
		`tensors "a" and "b" share bytes`},
	{"a long name", file(strings.Replace(one("F32", "[1]", "[0,4]"), `"a"`, `"`+strings.Repeat("a", 5000)+`"`, 1), 4), "its name has 5000 bytes"},
}

func one(dtype, shape, offsets string) string {
	return `{"a":{"dtype":"` + dtype + `","shape":` + shape + `,"data_offsets":` + offsets + `}}`
}

func TestBroken(t *testing.T) {
	for _, c := range broken {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(c.data)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// FuzzParse checks that no file panics, and that what is accepted lies in the file and shares no bytes.
func FuzzParse(f *testing.F) {
	f.Add(file(one("F32", "[1]", "[0,4]"), 4))
	for _, c := range broken {
		f.Add(c.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tensors, err := parse(data)
		if err != nil {
			return
		}
		end := int64(lengthBytes)
		for i := range tensors {
			x := &tensors[i]
			n, err := x.Count()
			require.NoError(t, err)
			require.Equal(t, n*int64(x.Type.Size()), x.Size)
			require.GreaterOrEqual(t, x.Offset, end)
			end = x.Offset + x.Size
			require.LessOrEqual(t, end, int64(len(data)))
		}
	})
}
