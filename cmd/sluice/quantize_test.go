package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/imatrix"
	"github.com/sluice-ai/sluice/storage/requant"
)

// quantized is what llama.cpp made of the draft model.
type quantized struct {
	FileBytes int64   `json:"file_bytes"`
	PPL       float64 `json:"ppl"`
	Tensors   map[string][3]any
}

// draft opens the model that the golden file is about.
func draft(t *testing.T) (f *gguf.File, golden map[string]quantized) {
	t.Helper()
	dir := testref.Dir(t)
	text, err := os.ReadFile(filepath.Join(dir, "golden", "quantize.json"))
	require.NoError(t, err)
	var file struct{ Types map[string]quantized }
	require.NoError(t, json.Unmarshal(text, &file))
	require.NotEmpty(t, file.Types)
	f, err = gguf.Open(filepath.Join(dir, "models", "draft-bf16.gguf"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f, file.Types
}

// Files are as large as llama.cpp's, and their tensors have the same types.
func TestQuantizePlan(t *testing.T) {
	f, golden := draft(t)
	for name, want := range golden {
		recipe, ok := ftype.Find(name)
		require.True(t, ok, name)
		q := &models.Quantization{File: f, Recipe: recipe}
		require.NoError(t, q.Plan(ftype.Options{}, false), name)
		require.Equal(t, want.FileBytes, q.Layout.Size, name)
		for _, x := range q.Layout.Tensors {
			require.Equal(t, want.Tensors[x.Name][0], x.Type.String(), "%s: %s", name, x.Name)
		}
	}
}

// The bytes of the formats that leave nothing to choose are llama.cpp's.
func TestQuantizeBytes(t *testing.T) {
	f, golden := draft(t)
	exact := map[quant.Type]bool{quant.F32: true, quant.F16: true, quant.BF16: true, quant.Q8_0: true,
		quant.Q4_0: true, quant.Q4_1: true, quant.Q5_0: true, quant.Q5_1: true}
	for _, name := range []string{"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "MXFP4_MOE"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "new.gguf")
			o := sluice("", "quantize", f.Name, path, name)
			require.Zero(t, o.code, o.stderr)
			require.NoFileExists(t, path+requant.Suffix)
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, golden[name].FileBytes, info.Size())
			got, err := gguf.Open(path)
			require.NoError(t, err)
			defer func() { require.NoError(t, got.Close()) }()
			require.Len(t, got.Tensors, len(golden[name].Tensors))
			for i := range got.Tensors {
				x, want := &got.Tensors[i], golden[name].Tensors[got.Tensors[i].Name]
				require.Equal(t, want[0], x.Type.String(), x.Name)
				require.NoError(t, got.View(x, func(data []byte) error {
					if sum := sha256.Sum256(data); exact[x.Type] {
						require.Equal(t, want[2], hex.EncodeToString(sum[:8]), x.Name)
					}
					return nil
				}))
			}
			fileType, err := got.Meta.Int("general.file_type")
			require.NoError(t, err)
			recipe, _ := ftype.Find(name)
			require.EqualValues(t, recipe.FileType, fileType)
		})
	}
}

func writeMatrix(t *testing.T, m *imatrix.Matrix, path string) {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, m.Write(&file))
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
}

func TestQuantizeUsage(t *testing.T) {
	model := filepath.Join("testdata", "..", "..", "..", "internal", "mini", "mini-Q4_K_M.gguf")
	dir := t.TempDir()
	copied := filepath.Join(dir, "model.gguf")
	data, err := os.ReadFile(model)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, data, 0o666))
	bad := filepath.Join(dir, "bad.dat")
	require.NoError(t, os.WriteFile(bad, []byte("no"), 0o666))
	partial := filepath.Join(dir, "half.gguf"+requant.Suffix)
	require.NoError(t, os.WriteFile(partial, data, 0o666))
	other := filepath.Join(dir, "other.gguf")
	matrix := imatrix.Matrix{Entries: map[string]imatrix.Entry{"x.weight": {Squares: []float32{1}, Counts: []float32{1}}}}
	writeMatrix(t, &matrix, other)
	out := filepath.Join(dir, "new.gguf")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{model, out, "Q4"}, exitUsage, `"Q4" is no file type: want one of F32, F16, BF16, Q8_0, `},
		{[]string{model, out, "Q4_0", "--tensor-type", "x"}, exitUsage,
			`--tensor-type is "x": want PATTERN=TYPE, such as ffn_down=Q8_0`},
		{[]string{model, out, "Q4_0", "--tensor-type", "x=Q9"}, exitUsage,
			`--tensor-type: "Q9" is no type of a tensor that can be written: want one such as Q8_0 or Q4_K`},
		{[]string{model, out, "Q4_0", "--tensor-type", "(=Q8_0"}, exitUsage, "--tensor-type: error parsing regexp"},
		{[]string{model, out, "Q4_0", "--embd-type", "Q8_K"}, exitUsage, `--embd-type: "Q8_K" is no type`},
		{[]string{model, out, "Q4_0", "-t", "2000"}, exitUsage, `-t is 2000: want 0 to 1024`},
		{[]string{model, out, "Q4_0", "--output-type", "Q4_0", "--leave-output"}, exitUsage,
			"--leave-output and --output-type contradict each other: leave one out"},
		{[]string{model, out, "Q4_0", "--tensor-type", "no_such=Q8_0"}, exitFailed,
			`mini-Q4_K_M.gguf: pattern "no_such": decides the type of no tensor`},
		{[]string{copied, copied, "Q4_0"}, exitUsage, "is a file that is read: choose another name for the new one"},
		{[]string{partial, strings.TrimSuffix(partial, requant.Suffix), "Q4_0"}, exitUsage, "is a file that is read"},
		{[]string{model, other, "Q4_0", "--imatrix", other}, exitUsage, "is a file that is read"},
		{[]string{model, out, "Q4_0", "--imatrix", other, "--allow-requantize"}, exitFailed,
			"mini-Q4_K_M.gguf: the importance matrix has none of its tensors: make one of this model with sluice imatrix"},
		{[]string{model, dir, "Q4_0"}, exitUsage, "is a folder: name a file in it"},
		{[]string{model, os.DevNull, "Q4_0"}, exitUsage, "/dev/null is a device: choose another name"},
		{[]string{model + "x", out, "Q4_0"}, exitFailed, "no such file"},
		{[]string{model, out, "Q4_0"}, exitFailed, "is quantised already, as Q4_K: start from a file in BF16 or F16, " +
			"or add --allow-requantize"},
		{[]string{model, out, "Q2_K_S", "--allow-requantize"}, exitFailed,
			"so few bits as in Q2_K need an importance matrix: make one with sluice imatrix"},
		{[]string{model, out, "Q4_0", "--imatrix", bad}, exitFailed, "or no importance matrix"},
		{[]string{model, filepath.Join(dir, "none", "new.gguf"), "Q8_0", "--allow-requantize"}, exitFailed, "no such file"},
	} {
		o := sluice("", append([]string{"quantize"}, c.args...)...)
		require.Equal(t, c.code, o.code, c.args)
		require.Contains(t, o.stderr, c.want)
		require.Empty(t, o.stdout)
		require.NoFileExists(t, out)
	}
}

// Of several faults always the same one is named.
func TestQuantizeFirstFault(t *testing.T) {
	for range 20 {
		o := sluice("", "quantize", "a", "b", "Q4_0", "--embd-type", "x", "--output-type", "y")
		require.Contains(t, o.stderr, `--output-type: "y"`)
	}
}

// Whoever stops it is told that nothing is lost.
func TestQuantizeStopped(t *testing.T) {
	f, _ := draft(t)
	path := filepath.Join(t.TempDir(), "new.gguf")
	e := envtest.NewEnv("", "quantize", f.Name, path, "Q8_0")
	e.Interruptible = interrupted
	require.Equal(t, exitInterrupted, run(e))
	require.Equal(t, path+".partial holds what is done so far: the same command goes on from there\nsluice: stopped\n",
		fmt.Sprint(e.Stderr))
	require.NoFileExists(t, path)
	require.Equal(t, exitDone, sluice("", e.Args...).code)
}

func TestQuantizeDryRun(t *testing.T) {
	f, _ := draft(t)
	out := filepath.Join(t.TempDir(), "new.gguf")
	o := sluice("", "quantize", "--dry-run", f.Name, out, "Q2_K_S", "--tensor-type", "blk.1.ffn=Q5_0", "--output-type", "f16")
	require.Zero(t, o.code, o.stderr)
	require.NoFileExists(t, out)
	require.Regexp(t, `(?m)^tensor +shape +from +to +size$`, o.stdout)
	require.Regexp(t, `(?m)^token_embd.weight +256 × 8192 +BF16 +F16 +4.0 MiB$`, o.stdout)
	require.Regexp(t, `(?m)^blk.1.ffn_up.weight +256 × 768 +BF16 +Q5_0 +132.0 KiB$`, o.stdout)
	require.Contains(t, o.stdout, `tensor "blk.0.attn_k.weight": so few bits as in Q2_K need an importance matrix`)
	require.Regexp(t, `\nQ2_K_S, 5.5 MiB, \S+ bits per weight; it was 10.3 MiB\n$`, o.stdout)
}

// An importance matrix changes what is written, is noted in the file, and only helps where it has something to say.
func TestQuantizeByImportance(t *testing.T) {
	f, _ := draft(t)
	dir := t.TempDir()
	const name = "blk.0.attn_q.weight"
	entry := imatrix.Entry{Squares: make([]float32, 256), Counts: []float32{2}}
	for i := range entry.Squares {
		entry.Squares[i] = float32(1 + i%7*10)
	}
	matrix := imatrix.Matrix{Chunks: 3, Entries: map[string]imatrix.Entry{name: entry}}
	writeMatrix(t, &matrix, filepath.Join(dir, "i.gguf"))
	with, without := filepath.Join(dir, "with.gguf"), filepath.Join(dir, "without.gguf")
	flags := []string{"--pure", "--embd-type", "Q8_0", "--tensor-type", "ffn=Q8_0"} // fast ones
	o := sluice("", append([]string{"quantize", f.Name, with, "Q4_0", "--imatrix", filepath.Join(dir, "i.gguf")}, flags...)...)
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "28 tensors had no importance of their own\n")
	o = sluice("", append([]string{"quantize", f.Name, without, "Q4_0"}, flags...)...)
	require.Zero(t, o.code, o.stderr)

	a, err := gguf.Open(with)
	require.NoError(t, err)
	defer a.Close()
	b, err := gguf.Open(without)
	require.NoError(t, err)
	defer b.Close()
	n, err := a.Meta.Int("quantize.imatrix.chunks_count")
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	for i := range a.Tensors {
		x, y := bytesOf(t, a, i), bytesOf(t, b, i)
		require.Equal(t, a.Tensors[i].Name == name, x != y, a.Tensors[i].Name)
	}
}

func bytesOf(t *testing.T, f *gguf.File, i int) (data string) {
	require.NoError(t, f.View(&f.Tensors[i], func(b []byte) error {
		data = strings.Clone(string(b))
		return nil
	}))
	return data
}

// A file that is larger than its type promises says why.
func TestQuantizeExplainsSize(t *testing.T) {
	f, _ := draft(t)
	o := sluice("", "quantize", "--dry-run", f.Name, "out.gguf", "MXFP4_MOE")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "MXFP4_MOE has 4.25 bits per weight, but what was written has 8.50: it is for experts")
	require.NotContains(t, sluice("", "quantize", "--dry-run", f.Name, "out.gguf", "Q8_0").stdout, "bits per weight, but")

	fixture := filepath.Join(testref.Dir(t), "fixtures", "llama.gguf") // rows of 64 values
	o = sluice("", "quantize", "--dry-run", "--allow-requantize", fixture, "out.gguf", "Q2_K")
	require.Zero(t, o.code, o.stderr)
	require.Regexp(t, `Q2_K has 2\.62 bits per weight, but what was written has \d\.\d\d: rows of \d+ values do not fill its blocks of 256`, o.stdout)
}
