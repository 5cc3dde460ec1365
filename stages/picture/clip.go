package picture

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/meta"
)

// FromClip reads the keys of a projector's GGUF (mmproj), as llama.cpp writes them. They do not say all: the filter is
// that of the family's own processor, and a grid has 8 to 4096 tokens where the file does not say how many.
func FromClip(m *meta.Map) (*Settings, error) {
	r := clip{m: m}
	kind, err := m.String("clip.projector_type")
	if err != nil {
		if kind, err = m.String("clip.vision.projector_type"); err != nil {
			return nil, err
		}
	}
	size := r.number("clip.vision.image_size", 0)
	s := &Settings{Filter: Bicubic, Width: size, Height: size, Patch: r.number("clip.vision.patch_size", 0), Merge: 1,
		Frames: 1, Factor: 1.0 / 255, Mean: r.three("clip.vision.image_mean"), Std: r.three("clip.vision.image_std")}
	if r.err != nil {
		return nil, r.err
	}
	side := size / max(s.Patch, 1)
	switch kind {
	case "mlp":
		s.Way, s.Shortest, s.Tokens = Crop, size, side*side
	case "gemma3":
		side /= max(r.number("clip.vision.projector.scale_factor", 4), 1)
		s.Way, s.Filter, s.Tokens = Squeeze, Bilinear, side*side
	case "gemma4v":
		const most = 280 // tokens
		s.Way, s.Width, s.Height, s.Merge = Spend, 0, 0, r.number("clip.vision.projector.scale_factor", 3)
		s.Most = most * s.block() * s.block()
	case "pixtral":
		s.Way, s.Merge = Fit, r.number("clip.vision.spatial_merge_size", 1)
	case "internvl":
		s.Way, s.Merge = Tiles, r.number("clip.vision.projector.scale_factor", 2)
		s.Least, s.Most = r.number("clip.vision.preproc_min_tiles", 1), r.number("clip.vision.preproc_max_tiles", 12)
		side /= s.Merge
		s.Tokens = side * side
	case "idefics3", "llama4", "resampler":
		r.cut(kind, s, size)
	case "qwen2vl_merger", "qwen2.5vl_merger", "qwen3vl_merger", "glm4v":
		s.Way, s.Width, s.Height, s.Frames = Grid, 0, 0, 2
		s.Merge = r.number("clip.vision.spatial_merge_size", 2)
		block := s.block() * s.block()
		s.Least = r.number("clip.vision.image_min_pixels", 8*block)
		s.Most = min(r.number("clip.vision.image_max_pixels", 4096*block), mostTower)
	default:
		return nil, fmt.Errorf("clip.projector_type is %q: want that of LLaVA (mlp), Gemma, Qwen-VL, GLM, Pixtral, "+
			"InternVL, Idefics 3, Llama 4 or MiniCPM-V", kind)
	}
	if r.err != nil {
		return nil, r.err
	}
	return s, s.Check()
}

// cut reads the settings of families that cut pictures into pieces.
func (r *clip) cut(kind string, s *Settings, size int) {
	if kind == "resampler" {
		s.Way, s.Least, s.Most, s.Tokens = Slices, 1, 9, 64
		if version, err := r.m.Int("clip.minicpmv_version"); err == nil && version == 2 {
			s.Tokens = 96
		}
		s.Tokens = r.number("clip.minicpmv_query_num", s.Tokens)
		return
	}
	s.Way, s.Filter, s.Least, s.Most = Canvas, Bilinear, 1, 16
	if kind == "idefics3" {
		s.Way, s.Filter, s.Least = Split, Lanczos, 0
		s.Most = r.number("clip.vision.preproc_image_size", size)
	}
	s.Merge = r.number("clip.vision.projector.scale_factor", 2)
	side := size / max(s.Patch, 1) / s.Merge
	s.Tokens = side * side
}

// clip reads keys; the first fault stays.
type clip struct {
	m   *meta.Map
	err error
}

// number reads a count; otherwise is for a file without it, 0: it must be there.
func (r *clip) number(key string, otherwise int) int {
	const most = 1 << 30
	if otherwise > 0 && !r.m.Has(key) {
		return otherwise
	}
	n, err := r.m.Int(key)
	if err == nil && (n < 1 || n > most) {
		err = fmt.Errorf("%s is %d: want 1 to %d", key, n, most)
	}
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		return 1
	}
	return int(n)
}

func (r *clip) three(key string) (to [3]float32) {
	list, err := r.m.Floats(key)
	if err == nil && len(list) != len(to) {
		err = fmt.Errorf("%s has %d numbers: want 3", key, len(list))
	}
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		return to
	}
	return [3]float32(list)
}
