package testref

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// base maps a vocabulary to the one on which it is a zstd patch.
var base = map[string]string{"refact": "starcoder", "phi-3": "llama-spm"}

// Vocab returns the GGUF file of a vocabulary, unpacked from the reference folder.
func Vocab(t testing.TB, name string) []byte {
	t.Helper()
	file := name + ".gguf.zst"
	opts := []zstd.DOption{zstd.WithDecoderMaxWindow(1 << 30)}
	if from, ok := base[name]; ok {
		file = name + ".gguf.from-" + from + ".zst"
		opts = append(opts, zstd.WithDecoderDictRaw(0, Vocab(t, from)))
	}
	packed, err := os.ReadFile(filepath.Join(Dir(t), "vocab", file))
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil, opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	data, err := d.DecodeAll(packed, nil)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return data
}
