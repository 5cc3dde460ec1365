// Package diffuse is how pictures come out of noise: levels of noise from one evaluation of a model to the next, and
// what an evaluation changes (schedule.go); two evaluations as one (guide.go).
//
// The models are flows: at level σ a picture is (1−σ)·image + σ·noise, and a model says the velocity noise − image. Not
// here: the models themselves, and what computes them.
package diffuse

import (
	"encoding/json"
	"fmt"
	"math"
)

// Shifting is how a schedule's levels are moved towards noise.
type Shifting uint8

// Ways of shifting a level σ: by a model's own factor s, or, for models that are told how many patches a picture has,
// by a number μ of them.
const (
	Fixed       Shifting = iota // s·σ/(1+(s−1)·σ)
	Exponential                 // e^μ/(e^μ+1/σ−1)
	Linear                      // μ/(μ+1/σ−1)
)

// Ending is where the levels of a schedule end, before they are shifted.
type Ending uint8

const (
	// Even levels are 1 … 1/n, as pipelines ask for today.
	Even Ending = iota
	// Trained levels end with the least one of training, shifted: it is shifted a second time.
	Trained
	// Zero levels are 1 … 0: the last evaluation changes nothing. So Z-Image was published, "9 steps" being 8.
	Zero
)

// trained is the number of a model's levels in training.
const trained = 1000

// MostSteps bounds the evaluations of a picture.
const MostSteps = 1000

// Flow is a schedule of levels, as the FlowMatchEulerDiscreteScheduler of diffusers has them.
type Flow struct {
	Shifting Shifting
	Shift    float64 // s, for Fixed; 1 leaves levels as they are
	Ending   Ending
}

// Tokens is the shift μ for a picture of so many patches: 0.5 at 256 of them, 1.15 at 4096, on a line between and
// beyond.
func Tokens(n int) float64 {
	const m = (1.15 - 0.5) / (4096 - 256)
	return float64(m*float64(n)) + (0.5 - 256*m)
}

// Levels are the levels of n evaluations, the first of pure noise, and 0 after the last. mu counts where the schedule
// is shifted by it.
func (f Flow) Levels(n int, mu float64) ([]float64, error) {
	switch {
	case n < 1 || n > MostSteps:
		return nil, fmt.Errorf("%d steps, want 1 to %d", n, MostSteps)
	case f.Shifting == Fixed && !(f.Shift > 0 && f.Shift <= math.MaxFloat32):
		return nil, fmt.Errorf("a shift of %v, want more than 0", f.Shift)
	case f.Shifting == Exponential && math.Abs(mu) <= 100, f.Shifting == Linear && mu > 0 && mu <= math.MaxFloat32:
	case f.Shifting != Fixed:
		return nil, fmt.Errorf("a shift of %v by patches, want a small number", mu)
	}
	last := 1 / float64(n)
	switch f.Ending {
	case Trained:
		last = f.shifted(1./trained, mu)
	case Zero:
		last = 0
	}
	levels := make([]float64, n+1)
	for i := range n {
		level := 1.0
		if i > 0 {
			level += float64(float64(i)/float64(n-1)) * (last - 1)
		}
		levels[i] = f.shifted(level, mu)
	}
	return levels, nil
}

func (f Flow) shifted(level, mu float64) float64 {
	if level <= 0 {
		return 0
	}
	switch f.Shifting {
	case Exponential:
		return math.Exp(mu) / (math.Exp(mu) + 1/level - 1)
	case Linear:
		return mu / (mu + 1/level - 1)
	}
	return f.Shift * level / (1 + (f.Shift-1)*level)
}

// Step moves a picture from one level to the next by a velocity, of as many values: Euler's method.
func Step(x, velocity []float32, from, to float64) {
	for i, v := range velocity {
		x[i] = float32(float64(x[i]) + float64((to-from)*float64(v)))
	}
}

// Noised is a picture at a level: what an evaluation begins with that does not begin with pure noise.
func Noised(image, noise []float32, level float64) []float32 {
	x := make([]float32, len(image))
	for i := range x {
		x[i] = float32(float64((1-level)*float64(image[i])) + float64(level*float64(noise[i])))
	}
	return x
}

// ReadFlow reads a scheduler_config.json, as diffusers has it.
func ReadFlow(text []byte) (Flow, error) {
	var c struct {
		Class   string  `json:"_class_name"`
		Shift   float64 `json:"shift"`
		Dynamic bool    `json:"use_dynamic_shifting"`
		Type    string  `json:"time_shift_type"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return Flow{}, err
	}
	if c.Class != "FlowMatchEulerDiscreteScheduler" {
		return Flow{}, fmt.Errorf("_class_name is %.40q, want FlowMatchEulerDiscreteScheduler", c.Class)
	}
	f := Flow{Shift: c.Shift}
	switch {
	case c.Dynamic && c.Type == "linear":
		f.Shifting = Linear
	case c.Dynamic:
		f.Shifting = Exponential
	}
	return f, nil
}
