package picture

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/meta"
)

const (
	clipFolder = `{"image_processor_type":"CLIPImageProcessor","size":{"shortest_edge":336},"crop_size":{"height":336,"width":336},
		"resample":3,"image_mean":[0.25,0.5,0.75],"image_std":[1,1,2],"rescale_factor":0.00392156862745098}`
	gemmaFolder = `{"image_processor_type":"Gemma3ImageProcessorFast","size":{"height":896,"width":896},"resample":2,"do_pan_and_scan":null}`
	qwenFolder  = `{"image_processor":{"image_processor_type":"Qwen2VLImageProcessorFast","patch_size":14,"merge_size":2,
		"temporal_patch_size":2,"size":{"shortest_edge":1,"longest_edge":2},"min_pixels":3136,"max_pixels":12845056}}`
)

func TestFolders(t *testing.T) {
	half := [3]float32{0.5, 0.5, 0.5}
	for _, c := range []struct {
		name, processor, config string
		want                    Settings
	}{
		{"CLIP", clipFolder, `{"vision_config":{"patch_size":14}}`, Settings{Way: Crop, Filter: Bicubic, Width: 336, Height: 336,
			Shortest: 336, Patch: 14, Merge: 1, Frames: 1, Tokens: 576, Factor: 0.00392156862745098,
			Mean: [3]float32{0.25, 0.5, 0.75}, Std: [3]float32{1, 1, 2}}},
		{"numbers for sizes, with the class", `{"image_processor_type":"CLIPImageProcessor","size":224,"crop_size":224,"do_normalize":false}`,
			`{"vision_config":{"patch_size":14},"vision_feature_select_strategy":"full"}`, Settings{Way: Crop, Filter: Bicubic, Width: 224, Height: 224,
				Shortest: 224, Patch: 14, Merge: 1, Frames: 1, Tokens: 257, Factor: 1.0 / 255, Std: [3]float32{1, 1, 1}}},
		{"not cut", `{"image_processor_type":"CLIPImageProcessor","size":{"height":28,"width":42},"do_center_crop":false}`,
			`{"vision_config":{"patch_size":14}}`, Settings{Way: Squeeze, Filter: Bicubic, Width: 42, Height: 28, Patch: 14, Merge: 1,
				Frames: 1, Tokens: 6, Factor: 1.0 / 255, Mean: half, Std: half}},
		{"Gemma 3", gemmaFolder, `{"mm_tokens_per_image":256,"vision_config":{"patch_size":14}}`, Settings{Way: Squeeze, Filter: Bilinear,
			Width: 896, Height: 896, Patch: 14, Merge: 1, Frames: 1, Tokens: 256, Factor: 1.0 / 255, Mean: half, Std: half}},
		{"Qwen", qwenFolder, `{}`, Settings{Way: Grid, Filter: Bicubic, Patch: 14, Merge: 2, Frames: 2, Least: 3136, Most: 12845056,
			Factor: 1.0 / 255, Mean: half, Std: half}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := FromFolder([]byte(c.processor), []byte(c.config))
			require.NoError(t, err)
			require.Equal(t, c.want, *s)
		})
	}
}

func TestFoldersFaults(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{"CLIPImageProcessor", "OddProcessor", `image_processor_type is "OddProcessor": want that of CLIP, LLaVA, SigLIP, Gemma 3 or Qwen-VL`},
		{`"resample":3`, `"resample":4`, "resample is 4: want 1 (Lanczos), 2 (bilinear) or 3 (bicubic)"},
		{`"resample":3`, `"resample":259`, "resample is 255"},
		{`[1,1,2]`, `[1,1]`, "image_mean has 3 numbers and image_std 2: want 3 of each"},
		{`[1,1,2]`, `[1,1,0]`, "want deviations above 0"},
		{`0.00392156862745098`, `-1`, "rescale_factor is -1"},
		{`{"shortest_edge":336}`, `{"shortest_edge":300}`, "the shorter side becomes 300 pixels, of which 336 x 336 are cut out: want more"},
		{`{"shortest_edge":336}`, `[336]`, "size: want a number or an object of sides"},
		{`{"height":336,"width":336}`, `{"height":336,"width":1000000}`, "the tower's picture has 1000000 x 336 pixels"},
		{`"resample":3`, `"do_resize":false`, "do_resize is off"},
		{`{"image`, `["image`, "preprocessor_config.json"},
	} {
		_, err := FromFolder([]byte(strings.Replace(clipFolder, c.was, c.is, 1)), []byte(`{"vision_config":{"patch_size":14}}`))
		require.ErrorContains(t, err, c.want)
	}
	_, err := FromFolder([]byte(clipFolder), []byte(`{}`))
	require.ErrorContains(t, err, "patches of 0 pixels")
	_, err = FromFolder([]byte(clipFolder), []byte(`{`))
	require.ErrorContains(t, err, "config.json: ")
	_, err = FromFolder([]byte(strings.Replace(qwenFolder, "3136", "12845057", 1)), []byte(`{}`))
	require.ErrorContains(t, err, "pictures of 12845057 to 12845056 pixels: want at least one block of 28 x 28")
}

// clipKeys are the keys of an mmproj file, with others in their place.
func clipKeys(kind string, other ...any) *meta.Map {
	m := &meta.Map{}
	m.Set("clip.projector_type", kind)
	m.Set("clip.vision.image_size", uint32(896))
	m.Set("clip.vision.patch_size", uint32(14))
	m.Set("clip.vision.image_mean", []float32{0.5, 0.5, 0.5})
	m.Set("clip.vision.image_std", []float32{0.5, 0.25, 0.5})
	for i := 0; i < len(other); i += 2 {
		m.Set(other[i].(string), other[i+1])
	}
	return m
}

func TestClipKeys(t *testing.T) {
	base := Settings{Patch: 14, Merge: 1, Frames: 1, Factor: 1.0 / 255, Mean: [3]float32{0.5, 0.5, 0.5},
		Std: [3]float32{0.5, 0.25, 0.5}}
	with := func(f func(*Settings)) Settings { s := base; f(&s); return s }
	for _, c := range []struct {
		keys *meta.Map
		want Settings
	}{
		{clipKeys("mlp", "clip.vision.image_size", uint32(336)), with(func(s *Settings) {
			s.Way, s.Filter, s.Width, s.Height, s.Shortest, s.Tokens = Crop, Bicubic, 336, 336, 336, 576
		})},
		{clipKeys("gemma3"), with(func(s *Settings) { s.Way, s.Filter, s.Width, s.Height, s.Tokens = Squeeze, Bilinear, 896, 896, 256 })},
		{clipKeys("qwen2.5vl_merger"), with(func(s *Settings) {
			s.Way, s.Filter, s.Merge, s.Frames, s.Least, s.Most = Grid, Bicubic, 2, 2, 8*28*28, 4096*28*28
		})},
		{clipKeys("qwen3vl_merger", "clip.vision.patch_size", uint32(16), "clip.vision.image_max_pixels", int32(65536),
			"clip.vision.image_min_pixels", int32(1024), "clip.vision.spatial_merge_size", uint32(1)), with(func(s *Settings) {
			s.Way, s.Filter, s.Patch, s.Frames, s.Least, s.Most = Grid, Bicubic, 16, 2, 1024, 65536
		})},
		{clipKeys("glm4v"), with(func(s *Settings) {
			s.Way, s.Filter, s.Merge, s.Frames, s.Least, s.Most = Grid, Bicubic, 2, 2, 8*28*28, 4096*28*28
		})},
		{clipKeys("gemma4v"), with(func(s *Settings) {
			s.Way, s.Filter, s.Merge, s.Most = Spend, Bicubic, 3, 280*42*42
		})},
		{clipKeys("pixtral", "clip.vision.spatial_merge_size", uint32(2)), with(func(s *Settings) {
			s.Way, s.Filter, s.Merge, s.Width, s.Height = Fit, Bicubic, 2, 896, 896
		})},
		{clipKeys("internvl", "clip.vision.image_size", uint32(448), "clip.vision.preproc_max_tiles", uint32(6)),
			with(func(s *Settings) {
				s.Way, s.Filter, s.Merge, s.Width, s.Height, s.Least, s.Most, s.Tokens = Tiles, Bicubic, 2, 448, 448, 1, 6, 256
			})},
		{clipKeys("idefics3", "clip.vision.image_size", uint32(364), "clip.vision.preproc_image_size", uint32(1820)),
			with(func(s *Settings) {
				s.Way, s.Filter, s.Merge, s.Width, s.Height, s.Most, s.Tokens = Split, Lanczos, 2, 364, 364, 1820, 169
			})},
		{clipKeys("llama4", "clip.vision.image_size", uint32(336)), with(func(s *Settings) {
			s.Way, s.Filter, s.Merge, s.Width, s.Height, s.Least, s.Most, s.Tokens = Canvas, Bilinear, 2, 336, 336, 1, 16, 144
		})},
		{clipKeys("resampler", "clip.vision.image_size", uint32(448), "clip.minicpmv_version", int32(2)), with(func(s *Settings) {
			s.Way, s.Filter, s.Width, s.Height, s.Least, s.Most, s.Tokens = Slices, Bicubic, 448, 448, 1, 9, 96
		})},
		{clipKeys("resampler", "clip.vision.image_size", uint32(448), "clip.minicpmv_version", int32(4),
			"clip.minicpmv_query_num", uint32(32)), with(func(s *Settings) {
			s.Way, s.Filter, s.Width, s.Height, s.Least, s.Most, s.Tokens = Slices, Bicubic, 448, 448, 1, 9, 32
		})},
	} {
		s, err := FromClip(c.keys)
		require.NoError(t, err)
		require.Equal(t, c.want, *s)
	}
	for want, keys := range map[string]*meta.Map{
		`clip.projector_type is "odd": want that of LLaVA (mlp), Gemma, Qwen-VL`: clipKeys("odd"),
		"pictures of 3 to 2 squares: want 1 to 64": clipKeys("internvl", "clip.vision.preproc_min_tiles", uint32(3),
			"clip.vision.preproc_max_tiles", uint32(2)),
		"pictures of at most 20000 pixels at the longer side, in pieces of 896 x 896: want 1 to 8 at a side": clipKeys("idefics3",
			"clip.vision.preproc_image_size", uint32(20000)),
		"pictures of at most 64 pixels at the longer side": clipKeys("idefics3", "clip.vision.preproc_image_size", uint32(64)),
		"pictures of at most 896 x 896 pixels: want one block of 1400": clipKeys("pixtral", "clip.vision.patch_size", uint32(140),
			"clip.vision.spatial_merge_size", uint32(10)),
		"pictures of 0 to 1951488000 pixels: want at least one block of": clipKeys("gemma4v", "clip.vision.patch_size", uint32(240),
			"clip.vision.projector.scale_factor", uint32(11)),
		"clip.vision.patch_size is 0: want 1 to":                clipKeys("mlp", "clip.vision.patch_size", uint32(0)),
		"clip.vision.image_mean has 2 numbers: want 3":          clipKeys("mlp", "clip.vision.image_mean", []float32{1, 1}),
		"clip.vision.projector_type: missing from the metadata": {},
		"the tower's picture has 100000 x 100000 pixels":        clipKeys("mlp", "clip.vision.image_size", uint32(100000)),
	} {
		_, err := FromClip(keys)
		require.ErrorContains(t, err, want)
	}
}

// TestGrids: whole blocks, within the bounds, near the picture's own size and proportions.
func TestGrids(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Settings{Way: Grid, Filter: Bicubic, Frames: 2, Factor: 1.0 / 255, Std: [3]float32{1, 1, 1}}
		s.Patch, s.Merge = rapid.IntRange(1, 32).Draw(t, "patch"), rapid.IntRange(1, 4).Draw(t, "merge")
		block := s.block()
		s.Least = rapid.IntRange(1, 100).Draw(t, "least") * block * block
		s.Most = s.Least * rapid.IntRange(8, 100).Draw(t, "most")
		if s.Most > mostTower {
			require.Error(t, s.Check())
			return
		}
		require.NoError(t, s.Check())
		w, h := rapid.IntRange(1, maxSide).Draw(t, "w"), rapid.IntRange(1, maxSide).Draw(t, "h")
		toW, toH, tokens, err := s.size(w, h)
		if max(w, h) > 200*min(w, h) {
			require.Equal(t, errThin, err)
			return
		}
		require.NoError(t, err)
		require.Zero(t, toW%block+toH%block)
		require.Equal(t, toW/block*(toH/block), tokens)
		require.Positive(t, tokens)
		if thin := max(w, h) > 8*min(w, h); !thin { // a side of less than a block is one, whatever comes of it
			require.LessOrEqual(t, toW*toH, s.Most)
			require.GreaterOrEqual(t, toW*toH, s.Least)
		}
	})
}

// TestResize: what is of one colour stays so, a part is the part of the whole, nothing changes where no size does.
func TestResize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.IntRange(1, 40)
		w, h, toW, toH := side.Draw(t, "w"), side.Draw(t, "h"), side.Draw(t, "toW"), side.Draw(t, "toH")
		f := rapid.SampledFrom([]Filter{Bilinear, Bicubic, Lanczos}).Draw(t, "filter")
		b := newBitmap(w, h)
		for i := range b.Pix {
			b.Pix[i] = uint8(i*i*31 + i*7)
		}
		whole := resize(b, toW, toH, area{0, 0, toW, toH}, f)
		if w == toW && h == toH {
			require.Equal(t, b.Pix, whole.Pix)
		}
		x, y := rapid.IntRange(0, toW-1).Draw(t, "x"), rapid.IntRange(0, toH-1).Draw(t, "y")
		part := resize(b, toW, toH, area{x, y, toW, toH}, f)
		for row := range part.Height {
			require.Equal(t, whole.row(y + row)[x*rgb:], part.row(row))
		}
		one := &Bitmap{w, h, bytes.Repeat([]byte{9, 200, 255}, w*h)}
		require.Equal(t, bytes.Repeat([]byte{9, 200, 255}, toW*toH), resize(one, toW, toH, area{0, 0, toW, toH}, f).Pix)
	})
}

// TestThinPictures: however thin a picture is, the tower's is small and quickly made.
func TestThinPictures(t *testing.T) {
	for _, size := range [][2]int{{1, maxSide}, {maxSide, 1}, {maxSide, 40}, {400, 9000}} {
		b := newBitmap(size[0], size[1])
		crop := Settings{Way: Crop, Filter: Bicubic, Width: 336, Height: 336, Shortest: 336, Patch: 14, Merge: 1, Frames: 1,
			Tokens: 576, Factor: 1.0 / 255, Std: [3]float32{1, 1, 1}}
		squeeze := crop
		squeeze.Way, squeeze.Filter, squeeze.Width, squeeze.Height, squeeze.Shortest = Squeeze, Bilinear, 896, 896, 0
		for _, s := range []*Settings{&crop, &squeeze} {
			require.NoError(t, s.Check())
			used := allocated(func() {
				p, err := s.process(b)
				require.NoError(t, err)
				require.Len(t, p.Values(), s.Width*s.Height*rgb)
			})
			require.Less(t, used, int64(40<<20), "%v", size)
		}
	}
}

func TestHashes(t *testing.T) {
	s, err := FromFolder([]byte(clipFolder), []byte(`{"vision_config":{"patch_size":14}}`))
	require.NoError(t, err)
	other := *s
	other.Shortest++
	data := encoded(t, PNG, gradient(24, 16))
	all, err := s.Process(data)
	require.NoError(t, err)
	require.Len(t, all, 1)
	p := all[0]
	require.Equal(t, p.Hash, s.HashOf(data))
	require.NotEqual(t, s.HashOf(data), other.HashOf(data), "other settings")
	require.NotEqual(t, s.HashOf(data), s.HashOf(append(data, 0)), "another file")
	i, err := Inspect(data)
	require.NoError(t, err)
	cut, err := s.Cut(i)
	require.NoError(t, err)
	require.Equal(t, Cut{Tokens: []int{p.Tokens}}, cut)
	require.Equal(t, fmt.Sprint(p.Planes()), fmt.Sprint(p.Values()))
	require.GreaterOrEqual(t, s.Bytes(i), i.Bytes+336*336*3*5)
	_, err = s.Process(data[:30])
	require.Error(t, err)
}

func FuzzFolder(f *testing.F) {
	for _, processor := range []string{clipFolder, gemmaFolder, qwenFolder} {
		f.Add([]byte(processor), []byte(`{"mm_tokens_per_image":256,"vision_config":{"patch_size":14}}`))
	}
	f.Fuzz(func(t *testing.T, processor, config []byte) {
		if s, err := FromFolder(processor, config); err == nil {
			require.NoError(t, s.Check())
			_, _, _, _ = s.size(100, 50) //nolint:dogsled // does not panic
		}
	})
}
