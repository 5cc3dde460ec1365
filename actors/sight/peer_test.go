package sight

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/stages/model/vision"
	"github.com/sluice-ai/sluice/stages/model/vision/visiontest"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// pixels is the picture of a tower, as its family's processor normalises it.
func pixels(t testing.TB, x *visiontest.Tiny) *vision.Picture {
	t.Helper()
	m := x.Meta()
	mean, err := m.Floats("clip.vision.image_mean")
	require.NoError(t, err)
	deviation, err := m.Floats("clip.vision.image_std")
	require.NoError(t, err)
	w, h := x.Size[0], x.Size[1]
	p := &vision.Picture{Height: h, Width: w, Values: make([]float32, 3*w*h)}
	for i, v := range visiontest.Pixels(w, h) {
		p.Values[i%3*w*h+i/3] = (float32(v)/255 - mean[i%3]) / deviation[i%3]
	}
	return p
}

// peers are rows that llama.cpp's libmtmd makes of the towers' pictures, by their names: release 1.7.15 of
// @fugood/node-llama-linux-x64, by mtmd_tokenize and mtmd_encode_chunk. InternVL's file had the first of its learned
// positions, that of the class, as the last one, since libmtmd has the class there, and takes positions as they come.
// Of Idefics 3's picture libmtmd makes four pieces and all of it, which is the picture itself: the last rows are these.
// MiniCPM-V's are those of the whole picture, of which libmtmd makes two slices, too. Llama 4's rows are line by line;
// libmtmd has them column by column, where transformers has lines.
const peers = "testdata/peer.json"

// closeness is what towers may differ from llama.cpp by, whose GELU is a table of half precision, and of which it takes
// the other formula where the families' own libraries have the error function.
const closeness = 1e-2

// TestTowersArePeers: rows of text that towers make of pictures are llama.cpp's, on the oracle and on the processor,
// which differ less from each other.
func TestTowersArePeers(t *testing.T) {
	write, want := os.Getenv("SLUICE_TOWERS"), map[string][]float32{}
	data, err := os.ReadFile(peers)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &want))
	processor, err := cpu.New(2, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, processor.Close()) }()
	for _, x := range visiontest.All() {
		t.Run(x.Name, func(t *testing.T) {
			if write != "" { // for llama.cpp
				require.NoError(t, os.WriteFile(filepath.Join(write, x.Name+".gguf"), x.Bytes(t), 0o600))
				raw := visiontest.Pixels(x.Size[0], x.Size[1])
				require.NoError(t, os.WriteFile(filepath.Join(write, x.Name+".rgb"), raw, 0o600))
			}
			var made [][]float32
			for _, d := range []backend.Device{ref.New(), processor} {
				eye, err := Open(d, x.File(t))
				require.NoError(t, err)
				defer func() { require.NoError(t, eye.Close()) }()
				seen, err := eye.Look(pixels(t, &x))
				require.NoError(t, err)
				require.Len(t, seen.Rows, seen.Grid.Height*seen.Grid.Width*x.Width())
				converttest.Near(t, want[x.Name], seen.Rows, closeness)
				made = append(made, seen.Rows)
			}
			converttest.Near(t, made[0], made[1], tolerance)
		})
	}
}

// TestBrokenTowers: of each family's file, any tensor that is missing or has another shape, and any key that is missing
// or absurd, is an error that says so, or changes nothing that matters; nothing panics.
func TestBrokenTowers(t *testing.T) {
	for _, x := range visiontest.All() {
		m, list, memory := x.Meta(), x.Tensors(), make([]byte, 2<<20)
		open := func(m *meta.Map, list []gguf.Tensor) error {
			size := int64(0)
			pieces := []gguf.Piece{{Data: memory}}
			for i := range list {
				list[i].Offset = size
				limit := float32(1)
				if strings.HasSuffix(list[i].Name, "_min") {
					limit = -1
				}
				binary.LittleEndian.PutUint32(memory[size:], math.Float32bits(limit))
				n := int64(4)
				for _, d := range list[i].Shape {
					n *= int64(d)
				}
				size += n
			}
			f, err := gguf.Assemble("x", m, pieces, list)
			if err != nil {
				return err
			}
			eye, err := Open(ref.New(), f)
			if err != nil {
				return errors.Join(err, f.Close())
			}
			_, err = eye.Tower.Layout(x.Size[1], x.Size[0])
			return errors.Join(err, eye.Close(), f.Close())
		}
		for i := range list {
			name := list[i].Name
			if name == "resampler.pos_embed_k" {
				continue // which only libmtmd asks for
			}
			less := slices.Delete(slices.Clone(list), i, i+1)
			err := open(m, less)
			if optional := strings.HasSuffix(name, ".bias") || x.Name == "mistral3" && strings.Contains(name, "k_norm") ||
				x.Name == "mistral3" && strings.Contains(name, "q_norm"); !optional {
				stem, _, _ := strings.Cut(name, ".weight")
				for _, end := range []string{"_min", "_max", "kv"} {
					stem = strings.TrimSuffix(stem, end)
				}
				if stem == "mm.patch_merger" && x.Kind == "pixtral" {
					stem = "mm.input_norm" // which has no use then
				}
				require.ErrorContains(t, err, stem, x.Name)
			}
			odd := slices.Clone(list)
			odd[i].Shape = append([]int{list[i].Shape[0] + 1}, list[i].Shape[1:]...)
			require.Error(t, open(m, odd), "%s: %s", x.Name, name)
		}
		for _, key := range m.Keys() {
			for _, value := range []any{uint32(0), uint32(1 << 31), "odd", float32(math.NaN())} {
				other := &meta.Map{}
				for _, k := range m.Keys() {
					v, _ := m.Get(k)
					other.Set(k, v)
				}
				other.Set(key, value)
				_ = open(other, slices.Clone(list))
			}
		}
	}
}
