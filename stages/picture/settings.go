package picture

import (
	"errors"
	"fmt"
	"math"
)

// Way is how a processor gets from any size to the tower's.
type Way uint8

// Ways of processors.
const (
	Squeeze Way = iota + 1 // to one size, whatever the proportions: SigLIP, Gemma 3
	Crop                   // the shorter side to one length, then the middle of it: CLIP, LLaVA
	Grid                   // to about as many pixels as it has, in whole blocks of patches: Qwen2-VL and what followed it
	Fit                    // to a longest side at most, in whole blocks of patches: Pixtral, Mistral 3
	Spend                  // to as many pixels as there may be, in whole blocks of patches: Gemma 4
	Tiles                  // to squares, and once more as one of them: InternVL
	Split                  // to a longest side, then to pieces that are squares, and once more as one: Idefics 3
	Canvas                 // onto pieces that are squares, and once more as one of them: Llama 4
	Slices                 // whole, and then in pieces of about as many pixels, of its proportions: MiniCPM-V
)

// Settings are what a model's processor does with a picture.
type Settings struct {
	Way           Way
	Filter        Filter
	Width, Height int // of the tower's picture: Squeeze, Crop; at most: Fit; of a piece: Tiles and so on
	Shortest      int // Crop: the shorter side before the cut
	Patch, Merge  int // sides: of a patch in pixels, of a token in patches
	Frames        int // Grid: how often a patch's pixels stand in its row
	Least, Most   int // Grid: pixels; Spend: pixels, at most; Tiles, Canvas, Slices: pieces; Split: the longer side
	Tokens        int // of any picture: Squeeze, Crop; of a piece: Tiles and what follows it
	Factor        float64
	Mean, Std     [3]float32
}

// most bounds sides and pixels of configurations: a tower's picture takes 12 bytes a pixel and frame.
const mostSide, mostTower = 8192, 1 << 25

// Check says what is wrong with settings.
func (s *Settings) Check() error {
	within := func(n, lo, hi int) bool { return lo <= n && n <= hi }
	switch {
	case s.Filter != Bilinear && s.Filter != Bicubic && s.Filter != Lanczos:
		return fmt.Errorf("resample is %d: want 1 (Lanczos), 2 (bilinear) or 3 (bicubic)", s.Filter)
	case math.IsNaN(s.Factor) || s.Factor <= 0 || s.Factor > 1:
		return fmt.Errorf("rescale_factor is %g: want more than 0, at most 1", s.Factor)
	case !within(s.Patch, 1, 256) || !within(s.Merge, 1, 16) || !within(s.Frames, 1, 8):
		return fmt.Errorf("patches of %d pixels, %d to a token's side, %d frames: want at most 256, 16, 8", s.Patch, s.Merge, s.Frames)
	}
	for c := range s.Std {
		const most = 1e6
		mean, std := float64(s.Mean[c]), float64(s.Std[c])
		if math.IsNaN(mean+std) || math.Abs(mean) > most || std <= 0 || std > most {
			return fmt.Errorf("image_mean is %g and image_std %g: want deviations above 0", s.Mean, s.Std)
		}
	}
	return s.bounds(within)
}

// bounds says what is wrong with sizes.
func (s *Settings) bounds(within func(n, lo, hi int) bool) error {
	const mostSquares, mostAcross = 64, 8
	block := s.block()
	if s.Way == Grid || s.Way == Spend {
		if least := s.Least; s.Way == Grid && !within(least, 1, s.Most) || !within(s.Most, block*block, mostTower) {
			return fmt.Errorf("pictures of %d to %d pixels: want at least one block of %d x %d, at most %d", least, s.Most, block,
				block, mostTower)
		}
		return nil
	}
	switch {
	case !within(s.Width, 1, mostSide) || !within(s.Height, 1, mostSide):
		return fmt.Errorf("the tower's picture has %d x %d pixels: want 1 to %d", s.Width, s.Height, mostSide)
	case s.Way == Fit && (s.Width < block || s.Height < block || s.Width*s.Height > mostTower):
		return fmt.Errorf("pictures of at most %d x %d pixels: want one block of %d x %d, at most %d pixels", s.Width, s.Height,
			block, block, mostTower)
	case s.Way == Fit:
		return nil
	case s.Way == Crop && (s.Shortest < max(s.Width, s.Height) || s.Shortest > mostSide):
		return fmt.Errorf("the shorter side becomes %d pixels, of which %d x %d are cut out: want more", s.Shortest, s.Width, s.Height)
	case (s.Way == Tiles || s.Way == Canvas || s.Way == Slices) && (!within(s.Least, 1, s.Most) || s.Most > mostSquares ||
		s.Width*s.Height*(s.Most+1) > mostTower):
		return fmt.Errorf("pictures of %d to %d squares: want 1 to %d, of %d pixels in all", s.Least, s.Most, mostSquares, mostTower)
	case s.Way == Split && (s.Width != s.Height || s.Most < s.Width || s.Most > s.Width*mostAcross ||
		s.most()*s.most() > mostTower):
		return fmt.Errorf("pictures of at most %d pixels at the longer side, in pieces of %d x %d: want 1 to %d at a side, "+
			"of %d pixels in all", s.Most, s.Width, s.Height, mostAcross, mostTower)
	case !within(s.Tokens, 1, 1<<16):
		return fmt.Errorf("%d tokens a picture: want 1 to %d", s.Tokens, 1<<16)
	}
	return nil
}

// block is the side of a token in pixels.
func (s *Settings) block() int { return s.Patch * s.Merge }

// errThin refuses what no grid fits.
var errThin = errors.New("the picture is more than 200 times as long as it is wide: cut it")

// grid is the size that a picture of w x h pixels gets in whole blocks of patches.
func (s *Settings) grid(w, h int) (toW, toH int, err error) {
	if max(w, h) > 200*min(w, h) {
		return 0, 0, errThin
	}
	block := float64(s.block())
	blocks := func(n float64, round func(float64) float64) int { return int(round(n/block)) * s.block() }
	wide, high := float64(w), float64(h)
	toW, toH = blocks(wide, math.RoundToEven), blocks(high, math.RoundToEven)
	switch {
	case toW*toH > s.Most:
		by := math.Sqrt(wide * high / float64(s.Most))
		toW, toH = max(s.block(), blocks(wide/by, math.Floor)), max(s.block(), blocks(high/by, math.Floor))
	case toW*toH < s.Least:
		by := math.Sqrt(float64(s.Least) / (wide * high))
		toW, toH = blocks(wide*by, math.Ceil), blocks(high*by, math.Ceil)
	}
	return toW, toH, nil
}
