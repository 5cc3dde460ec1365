package paint

import "github.com/sluice-ai/sluice/stages/picture"

// Order is a picture that somebody wants.
type Order struct {
	Prompt, Negative string // Negative counts with a Guidance above 1, unless a model takes that itself
	Width, Height    int    // pixels
	Steps            int    // evaluations
	Seed             uint64 // of the noise
	Guidance         float64
	Init             *picture.Bitmap     // to begin with instead of noise, of Width × Height pixels; nil: with noise
	Strength         float64             // how much of Init is lost in noise, from 0, nothing, to 1
	Salt             uint64              // whose texts share what was computed of them
	Done             func(steps, of int) // is told after each step; nil: nobody asks
	Tell             func(Progress)      // the same, with what the picture may become
}

// Usual is what a model is used to: what it takes of an Order that leaves it open.
type Usual struct {
	Steps    int
	Guidance float64
}

// Progress is how far a picture has come.
type Progress struct {
	Step, Steps int
	Preview     func() *picture.Bitmap // what it may become, a pixel a latent; nil: there is none
}

// First is the first of so many steps that an Order takes: those before would add noise to Init that it does not want.
func (o *Order) First() int {
	if o.Init == nil {
		return 0
	}
	return o.Steps - min(max(int(float64(o.Steps)*o.Strength+0.5), 1), o.Steps)
}
