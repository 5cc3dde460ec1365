package pixels

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Names of an autoencoder's inputs and outputs. Moments are the means of all channels, then the logarithms of their
// variances.
const (
	Latents = "latents"
	Pixels  = "pixels"
	Moments = "moments"
)

// Settings are what shapes of tensors do not say of an autoencoder.
type Settings struct {
	Groups  int     // of channels, that are normalised together
	Scaling float64 // a latent of a transformer is (mean − Shift)·Scaling
	Shift   float64
}

// Published are the settings of FLUX's autoencoder, which Z-Image has, too.
var Published = Settings{Groups: 32, Scaling: 0.3611, Shift: 0.1159}

// ReadSettings reads the config.json of an autoencoder, as diffusers has it.
func ReadSettings(text []byte) (Settings, error) {
	var c struct {
		Class   string   `json:"_class_name"`
		Groups  int      `json:"norm_num_groups"`
		Scaling float64  `json:"scaling_factor"`
		Shift   *float64 `json:"shift_factor"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return Settings{}, err
	}
	s := Settings{Groups: c.Groups, Scaling: c.Scaling}
	if c.Shift != nil {
		s.Shift = *c.Shift
	}
	if c.Class != "AutoencoderKL" {
		return s, fmt.Errorf("_class_name is %.40q, want AutoencoderKL", c.Class)
	}
	return s, s.check()
}

func (s Settings) check() error {
	switch {
	case s.Groups < 1:
		return fmt.Errorf("norm_num_groups is %d, want 1 or more", s.Groups)
	case !(s.Scaling > 0 && s.Scaling <= math.MaxFloat32):
		return fmt.Errorf("scaling_factor is %v, want more than 0", s.Scaling)
	case !(math.Abs(s.Shift) <= math.MaxFloat32):
		return fmt.Errorf("shift_factor is %v, want a number", s.Shift)
	}
	return nil
}

// Unscaled are latents of a transformer as a decoder takes them.
func (s Settings) Unscaled(latents []float32) []float32 {
	out := make([]float32, len(latents))
	for i, v := range latents {
		out[i] = float32(float64(v)/s.Scaling + s.Shift)
	}
	return out
}

// Scaled are means of an encoder as a transformer takes them.
func (s Settings) Scaled(means []float32) []float32 {
	out := make([]float32, len(means))
	for i, v := range means {
		out[i] = float32((float64(v) - s.Shift) * s.Scaling)
	}
	return out
}

// Colour is what a decoder says of a colour, from 0 to 1.
func Colour(v float32) float32 { return min(max(v/2+0.5, 0), 1) }

// Autoencoder makes pictures of latents, and latents of pictures: the AutoencoderKL of diffusers, with residual blocks
// and attention among the latents. A row is a latent, which stands for a cell of Side × Side pixels.
type Autoencoder struct {
	Settings
	Side     int
	Channels int       // of a latent
	Decoder  *ir.Bound // from Latents to Pixels; colours are −1 to 1, and may be beyond
	Encoder  *ir.Bound // from Pixels to Moments; nil: the file has none
	Tensors  []Tensor
}

// NewAutoencoder records the autoencoder that a file holds, with the names of diffusers, or those that Stable Diffusion
// and FLUX were published with.
func NewAutoencoder(file []ir.Tensor, s Settings) (*Autoencoder, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	a := &Autoencoder{Settings: s, Tensors: Tensors(file, latentName(levelsOf(file)))}
	r := coder{sizes: sizesOf(a.Tensors), settings: s}
	if err := r.decoder(a); err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	if r.sizes.has("encoder.conv_in.weight") {
		if err := r.encoder(a); err != nil {
			return nil, fmt.Errorf("encoder: %w", err)
		}
	}
	return a, nil
}

// coder records one half of an autoencoder.
type coder struct {
	*ir.Builder
	sizes    sizes
	settings Settings
	side     int // of a cell, of the value that is recorded
	channels int // of it
	fault    error
}

// begin starts a half.
func (r *coder) begin(ignore ...string) {
	r.Builder = ir.NewBuilder("autoencoder", r.sizes.has)
	r.Ignore(ignore...)
}

// levels is how many resolutions a half has.
func (r *coder) levels(list string) (int, error) {
	const most = 6
	n := r.sizes.count(list, "resnets.0.conv1.weight")
	if n < 1 || n > most {
		return 0, fmt.Errorf("%d %s, want 1 to %d", n, list, most)
	}
	return n, nil
}

func (r *coder) decoder(a *Autoencoder) error {
	r.begin("encoder.", "quant_conv.")
	levels, err := r.levels("decoder.up_blocks")
	if err != nil {
		return err
	}
	_, a.Channels, err = r.sizes.matrix("decoder.conv_in", window)
	if err != nil {
		return err
	}
	a.Side, r.side, r.channels = 1<<(levels-1), 1, a.Channels
	x := r.Input(Latents, a.Channels, true)
	r.Block()
	if r.sizes.has("post_quant_conv.weight") {
		x = r.conv(x, "post_quant_conv", 1)
	}
	x = r.middle(r.conv(x, "decoder.conv_in", 3), "decoder.mid_block")
	for l := range levels {
		block := fmt.Sprintf("decoder.up_blocks.%d.", l)
		x = r.residuals(x, block)
		if l < levels-1 {
			x = r.resized(x, block+"upsamplers.0.conv", 2, 1)
		}
	}
	r.Output(Pixels, r.last(x, "decoder"))
	if r.fault == nil && r.channels != colours {
		r.fault = fmt.Errorf("decoder.conv_out makes %d colours, want %d", r.channels, colours)
	}
	a.Decoder, err = r.end(a.Tensors)
	return err
}

func (r *coder) encoder(a *Autoencoder) error {
	r.begin("decoder.", "post_quant_conv.")
	levels, err := r.levels("encoder.down_blocks")
	if err == nil && 1<<(levels-1) != a.Side {
		err = fmt.Errorf("%d down_blocks, and cells of %d pixels at a side in the decoder", levels, a.Side)
	}
	if err != nil {
		return err
	}
	r.side, r.channels = a.Side, colours
	x := r.Input(Pixels, colours*a.Side*a.Side, true)
	r.Block()
	x = r.conv(x, "encoder.conv_in", 3)
	for l := range levels {
		block := fmt.Sprintf("encoder.down_blocks.%d.", l)
		x = r.residuals(x, block)
		if l < levels-1 {
			x = r.resized(x, block+"downsamplers.0.conv", 1, 2)
		}
	}
	x = r.last(r.middle(x, "encoder.mid_block"), "encoder")
	if r.sizes.has("quant_conv.weight") {
		x = r.conv(x, "quant_conv", 1)
	}
	r.Output(Moments, x)
	if r.fault == nil && r.channels != 2*a.Channels {
		r.fault = fmt.Errorf("encoder.conv_out makes %d channels, want %d", r.channels, 2*a.Channels)
	}
	a.Encoder, err = r.end(a.Tensors)
	return err
}

// end binds a half.
func (r *coder) end(tensors []Tensor) (*ir.Bound, error) {
	if r.fault != nil {
		return nil, r.fault
	}
	p, err := r.Program(0)
	if err != nil {
		return nil, err
	}
	return bind(p, tensors)
}

const (
	window  = 9 // pixels of a convolution
	colours = 3
	eps     = 1e-6
)

// conv is a convolution at the resolution of x.
func (r *coder) conv(x ir.Value, name string, size int) ir.Value {
	return r.convolve(x, name, ir.Conv2DArgs{Size: size, Side: r.side, Up: 1, Stride: 1})
}

// resized is a convolution at twice the resolution of x, or of each second pixel.
func (r *coder) resized(x ir.Value, name string, up, stride int) ir.Value {
	x = r.convolve(x, name, ir.Conv2DArgs{Size: 3, Side: r.side, Up: up, Stride: stride})
	r.side = r.side * up / stride
	return x
}

func (r *coder) convolve(x ir.Value, name string, a ir.Conv2DArgs) ir.Value {
	out, in, err := r.sizes.matrix(name, a.Size*a.Size)
	if err == nil && in != r.channels {
		err = fmt.Errorf("%s.weight takes %d channels, want %d", name, in, r.channels)
	}
	if err != nil {
		r.fault, out = errors.Join(r.fault, err), 1
	}
	r.channels = out
	return r.Conv2D(x, name, a, out)
}

// norm normalises groups of channels.
func (r *coder) norm(x ir.Value, name string) ir.Value {
	if r.channels%r.settings.Groups != 0 {
		r.fault = errors.Join(r.fault, fmt.Errorf("%s has %d channels, want a multiple of %d groups", name, r.channels,
			r.settings.Groups))
	}
	return r.GridNorm(x, name, r.channels, r.settings.Groups, eps)
}

// active is a norm and an activation.
func (r *coder) active(x ir.Value, name string) ir.Value { return r.Act(ir.SiLU, r.norm(x, name)) }

// residuals are the residual blocks of a level.
func (r *coder) residuals(x ir.Value, block string) ir.Value {
	for i := range r.sizes.count(block+"resnets", "conv1.weight") {
		x = r.residual(x, fmt.Sprintf("%sresnets.%d.", block, i))
	}
	return x
}

// residual is a residual block: two convolutions beside x, or beside a product of x if the width changes.
func (r *coder) residual(x ir.Value, name string) ir.Value {
	r.Block()
	in := r.channels
	y := r.conv(r.active(x, name+"norm1"), name+"conv1", 3)
	y = r.conv(r.active(y, name+"norm2"), name+"conv2", 3)
	if out := r.channels; r.sizes.has(name + "conv_shortcut.weight") {
		r.channels = in
		x = r.conv(x, name+"conv_shortcut", 1)
	} else if in != out {
		r.fault = errors.Join(r.fault, fmt.Errorf("%sconv_shortcut.weight is missing", name))
		return y
	}
	return r.Add(x, y)
}

// middle is two residual blocks, and attention of one head between them.
func (r *coder) middle(x ir.Value, block string) ir.Value {
	x = r.residual(x, block+".resnets.0.")
	name, c := block+".attentions.0.", r.channels
	if r.sizes.has(name + "to_q.weight") {
		r.Block()
		n := r.norm(x, name+"group_norm")
		a := ir.AttendArgs{Heads: 1, KVHeads: 1, KDim: c, VDim: c, Both: true, Scale: float32(1 / math.Sqrt(float64(c)))}
		seen := r.Attend(r.Linear(n, name+"to_q", c), r.Linear(n, name+"to_k", c), r.Linear(n, name+"to_v", c), a)
		x = r.Add(x, r.Linear(seen, name+"to_out.0", c))
	}
	return r.residual(x, block+".resnets.1.")
}

// last is what a half ends with.
func (r *coder) last(x ir.Value, half string) ir.Value {
	r.Block()
	return r.conv(r.active(x, half+".conv_norm_out"), half+".conv_out", 3)
}

var level = regexp.MustCompile(`^decoder\.up\.(\d)\.`)

// levelsOf is how many levels a decoder has whose levels are numbered from the finest one on.
func levelsOf(file []ir.Tensor) (n int) {
	for i := range file {
		if at := level.FindStringSubmatch(strings.TrimPrefix(file[i].Name, firstStage)); at != nil {
			l, _ := strconv.Atoi(at[1]) // a digit
			n = max(n, l+1)
		}
	}
	return n
}

// firstStage is before the names of an autoencoder in files of whole Stable Diffusion models.
const firstStage = "first_stage_model."

// latentName says how tensors of an autoencoder of so many levels are called today.
func latentName(levels int) func(string) string {
	words := strings.NewReplacer(".mid.block_1.", ".mid_block.resnets.0.", ".mid.block_2.", ".mid_block.resnets.1.",
		".mid.attn_1.norm.", ".mid_block.attentions.0.group_norm.", ".mid.attn_1.q.", ".mid_block.attentions.0.to_q.",
		".mid.attn_1.k.", ".mid_block.attentions.0.to_k.", ".mid.attn_1.v.", ".mid_block.attentions.0.to_v.",
		".mid.attn_1.proj_out.", ".mid_block.attentions.0.to_out.0.", ".nin_shortcut.", ".conv_shortcut.",
		".norm_out.", ".conv_norm_out.", ".down.", ".down_blocks.", ".block.", ".resnets.",
		".upsample.conv.", ".upsamplers.0.conv.", ".downsample.conv.", ".downsamplers.0.conv.")
	return func(name string) string {
		name = strings.TrimPrefix(name, firstStage)
		if at := level.FindStringSubmatch(name); at != nil {
			l, _ := strconv.Atoi(at[1])
			name = fmt.Sprintf("decoder.up_blocks.%d.", levels-1-l) + name[len(at[0]):]
		}
		return words.Replace(name)
	}
}
