package picture

import (
	"encoding/json"
	"fmt"
	"strings"
)

// configured is what of a folder's configuration says how pictures are processed. All of it may be missing.
// Wide: it is a file's form.
type configured struct {
	Type      string          `json:"image_processor_type"`
	Size      json.RawMessage `json:"size"`
	CropSize  json.RawMessage `json:"crop_size"`
	Resample  *int            `json:"resample"`
	Factor    *float64        `json:"rescale_factor"`
	Mean      []float32       `json:"image_mean"`
	Std       []float32       `json:"image_std"`
	Normal    *bool           `json:"do_normalize"`
	Crops     *bool           `json:"do_center_crop"`
	Resizes   *bool           `json:"do_resize"`
	Pans      bool            `json:"do_pan_and_scan"`
	Patch     int             `json:"patch_size"`
	Merge     int             `json:"merge_size"`
	Frames    int             `json:"temporal_patch_size"`
	MinPixels int             `json:"min_pixels"`
	MaxPixels int             `json:"max_pixels"`
}

// modelled is what of a model's config.json tells the tokens of a picture.
type modelled struct {
	PerImage int    `json:"mm_tokens_per_image"`
	Strategy string `json:"vision_feature_select_strategy"`
	Vision   struct {
		Patch int `json:"patch_size"`
	} `json:"vision_config"`
}

// sides are the members of a size.
type sides struct {
	Height, Width int
	Shortest      int `json:"shortest_edge"`
	Longest       int `json:"longest_edge"`
}

// sidesOf reads a size, which older configurations have as a number.
func sidesOf(name string, raw json.RawMessage) (s sides, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return sides{}, nil
	}
	n := 0
	if json.Unmarshal(raw, &n) == nil {
		return sides{n, n, n, 0}, nil
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return sides{}, fmt.Errorf("%s: want a number or an object of sides", name)
	}
	return s, nil
}

// FromFolder reads a folder's preprocessor_config.json, or its processor_config.json with the same inside, and the
// model's config.json.
func FromFolder(processor, config []byte) (*Settings, error) {
	outer := struct {
		Inside *configured `json:"image_processor"`
		configured
	}{}
	if err := json.Unmarshal(processor, &outer); err != nil {
		return nil, fmt.Errorf("preprocessor_config.json: %w", err)
	}
	c := &outer.configured
	if outer.Inside != nil {
		c = outer.Inside
	}
	var m modelled
	if err := json.Unmarshal(config, &m); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	s, err := c.settings(&m)
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("preprocessor_config.json: %w", err)
	}
	return s, nil
}

func (c *configured) settings(m *modelled) (*Settings, error) {
	s := &Settings{Filter: Bicubic, Patch: m.Vision.Patch, Merge: 1, Frames: 1, Factor: 1.0 / 255,
		Mean: [3]float32{0.5, 0.5, 0.5}, Std: [3]float32{0.5, 0.5, 0.5}}
	if c.Resample != nil {
		s.Filter = Filter(min(max(*c.Resample, 0), 255))
	}
	if c.Factor != nil {
		s.Factor = *c.Factor
	}
	if c.Normal != nil && !*c.Normal {
		s.Mean, s.Std = [3]float32{}, [3]float32{1, 1, 1}
	} else if len(c.Mean) > 0 || len(c.Std) > 0 {
		if len(c.Mean) != rgb || len(c.Std) != rgb {
			return nil, fmt.Errorf("image_mean has %d numbers and image_std %d: want 3 of each", len(c.Mean), len(c.Std))
		}
		s.Mean, s.Std = [3]float32(c.Mean), [3]float32(c.Std)
	}
	if c.Resizes != nil && !*c.Resizes || c.Pans {
		return nil, fmt.Errorf("do_resize is off, or do_pan_and_scan on: want pictures resized as one")
	}
	size, err := sidesOf("size", c.Size)
	if err != nil {
		return nil, err
	}
	kind := strings.TrimSuffix(c.Type, "Fast")
	switch kind {
	case "CLIPImageProcessor", "LlavaImageProcessor":
		return s, c.crop(s, m, size)
	case "Gemma3ImageProcessor", "SiglipImageProcessor":
		s.Way, s.Width, s.Height, s.Tokens = Squeeze, size.Width, size.Height, m.PerImage
		if s.Tokens == 0 && s.Patch > 0 {
			s.Tokens = s.Width / s.Patch * (s.Height / s.Patch)
		}
		return s, nil
	case "Qwen2VLImageProcessor", "Qwen3VLImageProcessor":
		s.Way, s.Patch, s.Merge, s.Frames = Grid, c.Patch, c.Merge, c.Frames
		s.Least, s.Most = size.Shortest, size.Longest
		if c.MinPixels > 0 {
			s.Least = c.MinPixels
		}
		if c.MaxPixels > 0 {
			s.Most = c.MaxPixels
		}
		s.Most = min(s.Most, mostTower)
		return s, nil
	}
	return nil, fmt.Errorf("image_processor_type is %q: want that of CLIP, LLaVA, SigLIP, Gemma 3 or Qwen-VL", c.Type)
}

// crop reads what CLIP's processor has of its own.
func (c *configured) crop(s *Settings, m *modelled, size sides) error {
	cut, err := sidesOf("crop_size", c.CropSize)
	if err != nil {
		return err
	}
	s.Way, s.Width, s.Height, s.Shortest = Crop, cut.Width, cut.Height, size.Shortest
	if c.Crops != nil && !*c.Crops {
		s.Way, s.Width, s.Height, s.Shortest = Squeeze, size.Width, size.Height, 0
	}
	if s.Patch > 0 {
		s.Tokens = s.Width / s.Patch * (s.Height / s.Patch)
	}
	if m.Strategy == "full" { // with the class token
		s.Tokens++
	}
	return nil
}
