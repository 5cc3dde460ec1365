package torch

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
)

// save writes an archive as PyTorch does: a pickle, the order of bytes, and two storages.
func save(t testing.TB, pickle []byte, edit func(map[string][]byte)) []byte {
	t.Helper()
	files := map[string][]byte{"data.pkl": pickle, "byteorder": []byte("little"), "data/0": make([]byte, 24),
		"data/1": make([]byte, 8)}
	if edit != nil {
		edit(files)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range []string{"data.pkl", "byteorder", "data/0", "data/1"} {
		if files[name] == nil {
			continue
		}
		f, err := w.CreateHeader(&zip.FileHeader{Name: "model/" + name, Method: zip.Store})
		require.NoError(t, err)
		_, err = f.Write(files[name])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func pickle(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".pkl"))
	require.NoError(t, err)
	return text
}

func parse(b []byte) ([]element.Stored, error) { return Parse(bytes.NewReader(b), int64(len(b))) }

// The pickles are CPython's own, of protocols 2 and 4: a state_dict as PyTorch saves it, and one in a checkpoint.
func TestParse(t *testing.T) {
	for _, name := range []string{"state", "state4"} {
		t.Run(name, func(t *testing.T) {
			b := save(t, pickle(t, name), nil)
			got, err := parse(b)
			require.NoError(t, err)
			first := int64(bytes.Index(b, make([]byte, 24)))
			shapes := map[string]element.Stored{}
			for _, s := range got {
				shapes[s.Name] = s
			}
			require.Len(t, shapes, 5)
			require.Equal(t, []int{2, 3}, shapes["w"].Shape)
			require.Equal(t, shapes["w"].Offset, shapes["tied"].Offset)
			require.Equal(t, shapes["w"].Offset+8, shapes["tail"].Offset)
			require.Equal(t, first, shapes["w"].Offset)
			require.Equal(t, element.BF16, shapes["h"].Type)
			require.EqualValues(t, 8, shapes["h"].Size)
			require.Empty(t, shapes["one"].Shape)
			require.Equal(t, shapes["h"].Offset+6, shapes["one"].Offset)
		})
	}
}

// TestParams: the dictionary that Real-ESRGAN's files hold has another name.
func TestParams(t *testing.T) {
	text := pickle(t, "state4")
	require.Contains(t, string(text), "state_dict")
	got, err := parse(save(t, bytes.ReplaceAll(text, []byte("state_dict"), []byte("params_ema")), nil))
	require.NoError(t, err)
	require.Len(t, got, 5)
}

// A pickle that calls something else is an error that names it, and nothing of it runs.
func TestCallsAreRefused(t *testing.T) {
	for _, name := range []string{"system", "system4"} {
		_, err := parse(save(t, pickle(t, name), nil))
		require.ErrorContains(t, err, `uses "posix.system", which is none of the names that tensors need`)
	}
	for text, want := range map[string]string{
		"cbuiltins\neval\n(X\x01\x00\x00\x001tR.":               `uses "builtins.eval"`,
		"ctorch._utils\n_rebuild_tensor_v2\n)R.":                `calls "torch._utils._rebuild_tensor_v2" with what it does not take`,
		"\x80\x02i__builtin__\nexec\n.":                         "instruction 0x69 is none that tensors need",
		"\x80\x02cposix\nsystem\n.":                             `uses "posix.system"`,
		"\x80\x04\x8c\x02os\x8c\x06system\x93.":                 `uses "os.system"`,
		"c__main__\nFloatStorage\n.":                            `uses "__main__.FloatStorage"`,
		"\x80\x02}q\x00(X\x01\x00\x00\x00aK\x01u":               "something is missing",
		"\x80\x02K\x01.":                                        "holds no dictionary of tensors",
		"\x80\x02}.":                                            "holds no tensors by name",
		"\x80\x02h\x07.":                                        "something is missing",
		"\x80\x02}X\xff\xff\xff\xffa.":                          "something is missing",
		"\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00.": "a number has 9 bytes",
	} {
		_, err := parse(save(t, []byte(text), nil))
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func TestBroken(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(map[string][]byte)
		want string
	}{
		{"big-endian", func(f map[string][]byte) { f["byteorder"] = []byte("big") }, `byte order is "big", want little`},
		{"no data", func(f map[string][]byte) { delete(f, "data/1") }, "data/1, is missing or compressed"},
		{"short data", func(f map[string][]byte) { f["data/0"] = make([]byte, 20) }, "the file is damaged"},
		{"no pickle", func(f map[string][]byte) { delete(f, "data.pkl") }, "holds no data.pkl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(save(t, pickle(t, "state"), c.edit))
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := parse([]byte("\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."))
	require.ErrorContains(t, err, "is no file of PyTorch 1.6 or later")
}

// Where tensors lie is checked one by one: data/0 has 24 bytes.
func TestPlace(t *testing.T) {
	b := save(t, pickle(t, "state"), nil)
	r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	a, err := open(r)
	require.NoError(t, err)
	s := storage{element.F32, "0"}
	for _, c := range []struct {
		tensor tensor
		want   string
	}{
		{tensor{s, 0, []int{2, 3}, []int{3, 1}}, ""},
		{tensor{s, 5, []int{1, 1}, []int{77, 99}}, ""},
		{tensor{s, 6, []int{0}, []int{1}}, ""},
		{tensor{s, 0, []int{2, 3}, []int{1, 2}}, "want the elements in order"},
		{tensor{s, 0, []int{2, 3}, []int{1}}, "want the elements in order"},
		{tensor{s, 4, []int{3}, []int{1}}, "needs 3 elements from 4 of data/0, which has 24 bytes"},
		{tensor{s, 1 << 61, []int{1}, []int{1}}, "needs 1 elements from"},
		{tensor{s, -1, []int{1}, []int{1}}, "needs 1 elements from -1"},
		{tensor{s, 0, []int{1 << 40, 1 << 40}, []int{1 << 40, 1}}, "more elements than any disk"},
		{tensor{storage{element.F32, "../0"}, 0, []int{1}, []int{1}}, "is missing or compressed"},
	} {
		_, err := a.place("x", &c.tensor, int64(len(b)))
		if c.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
}

// FuzzPickle checks that no pickle panics or makes more than its text.
func FuzzPickle(f *testing.F) {
	for _, name := range []string{"state", "state4", "system", "system4"} {
		f.Add(pickle(f, name))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		root, err := interpret(text)
		if err != nil {
			return
		}
		if named, err := tensorsOf(root); err == nil {
			for _, one := range named {
				one.contiguous()
			}
		}
	})
}

// FuzzParse checks that what is accepted lies in the file.
func FuzzParse(f *testing.F) {
	f.Add(save(f, pickle(f, "state"), nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parse(data)
		if err != nil {
			return
		}
		for _, s := range all {
			require.GreaterOrEqual(t, s.Offset, int64(0))
			require.LessOrEqual(t, s.Offset+s.Size, int64(len(data)))
		}
	})
}
