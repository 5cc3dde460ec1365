package synth_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/stages/model/synth"
)

// shaped is the tensors of a network, as a file has them.
func shaped(t *testing.T, name string, tiny bool) (list []ir.Tensor, values int64) {
	t.Helper()
	p, ok := synth.FindPicture(name, tiny)
	require.True(t, ok, name)
	for _, x := range p.Tensors() {
		typ, n := quant.F16, int64(1)
		if x.Vector {
			typ = quant.F32
		}
		for _, d := range x.Shape {
			n *= int64(d)
		}
		list, values = append(list, ir.Tensor{Name: x.Name, Type: typ, Shape: x.Shape}), values+n
	}
	return list, values
}

// record has a network's program recorded from the tensors, with the settings of what was published.
func record(name string, list []ir.Tensor) error {
	var err error
	switch name {
	case "z-image-turbo":
		_, err = pixels.NewZImage(list, pixels.ZImageTurbo)
	case "flux-schnell", "flux-dev":
		_, err = pixels.NewFlux(list, pixels.Flux1)
	case "flux-ae":
		_, err = pixels.NewAutoencoder(list, pixels.Published)
	case "clip-l":
		_, err = pixels.NewClip(list, pixels.ClipSettings(list))
	case "t5-xxl":
		_, err = pixels.NewT5(list, pixels.T5Settings(list))
	case "realesrgan-x4":
		_, err = pixels.NewUpscaler(list)
	}
	return err
}

// TestPicturesArePublished: the shapes have as many numbers as the files that were published, whose sizes are known;
// and each is recorded as the kind that it is, by the names that such files have, whole and tiny.
func TestPicturesArePublished(t *testing.T) {
	kinds := map[string]pixels.Kind{"z-image-turbo": pixels.ZImageKind, "flux-schnell": pixels.FluxKind, "flux-dev": pixels.FluxKind,
		"flux-ae": pixels.AutoencoderKind, "clip-l": pixels.ClipKind, "t5-xxl": pixels.T5Kind, "realesrgan-x4": pixels.Other}
	// Of bytes of published files, without their headers: flux1-schnell 23,782,357,120 of BF16, flux1-dev 23,802,816,640,
	// ae.safetensors 335,278,732 of F32, clip_l.safetensors 246,120,960 of F16, t5xxl_fp16.safetensors 9,787,813,888 with
	// its table of 131,596,288 numbers twice, RealESRGAN_x4plus 66,791,948 of F32.
	numbers := map[string]int64{"z-image-turbo": 6_154_908_736, "flux-schnell": 11_891_178_560, "flux-dev": 11_901_408_320,
		"flux-ae": 83_819_683, "clip-l": 123_060_480, "t5-xxl": 4_762_310_656, "realesrgan-x4": 16_697_987}
	for _, p := range synth.Pictures(false) {
		_, values := shaped(t, p.Name, false)
		require.Equal(t, numbers[p.Name], values, p.Name)
		for _, tiny := range []bool{false, true} {
			list, _ := shaped(t, p.Name, tiny)
			require.NoError(t, record(p.Name, list), p.Name)
			require.Equal(t, kinds[p.Name], pixels.KindOf(list), p.Name)
			require.Equal(t, p.Name == "flux-dev", pixels.Guided(list), p.Name)
		}
	}
	require.Len(t, numbers, len(synth.Pictures(false)))
}

// TestPicturesHaveOfficialNames: names and shapes are those that were noted of published files, for the first block of
// each kind and what is in no block; prefixes that other programs add change nothing.
func TestPicturesHaveOfficialNames(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "official.json"))
	require.NoError(t, err)
	var official map[string]map[string][]int // rows first, as safetensors has them
	require.NoError(t, json.Unmarshal(data, &official))
	prefixes := map[string]string{"z-image-turbo": "model.diffusion_model.", "flux-dev": "model.diffusion_model.",
		"flux-ae": "first_stage_model.", "clip-l": "text_encoders.clip_l.transformer.",
		"t5-xxl": "text_encoders.t5xxl.transformer.", "realesrgan-x4": "params_ema."}
	require.Len(t, official, len(prefixes))
	for name, want := range official {
		list, _ := shaped(t, name, false)
		got := map[string][]int{}
		for _, x := range list {
			shape := []int{}
			for i := range x.Shape {
				shape = append(shape, x.Shape[len(x.Shape)-1-i])
			}
			got[x.Name] = shape
		}
		for tensor, shape := range want {
			require.Equal(t, shape, got[tensor], "%s: %s", name, tensor)
		}
		for i := range list {
			list[i].Name = prefixes[name] + list[i].Name
		}
		require.NoError(t, record(name, list), name)
	}
}
