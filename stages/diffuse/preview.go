package diffuse

import (
	"errors"
	"math"
)

// Preview is a guess at the colours of a picture from its latents, each colour a sum of a latent's channels: what a
// decoder makes of them in the mean.
type Preview struct {
	channels int
	weights  [][]float64 // by colour: of each channel, and what is added
}

// FitPreview finds the sums that come nearest to colours, of which each latent has so many.
func FitPreview(latents, colours []float32, channels, each int) (*Preview, error) {
	n := channels + 1
	rows := len(latents) / max(channels, 1)
	if channels < 1 || each < 1 || rows < n || rows*each != len(colours) {
		return nil, errors.New("too few latents for a preview")
	}
	square, right := make([][]float64, n), make([][]float64, n)
	for i := range n {
		square[i], right[i] = make([]float64, n), make([]float64, each)
		square[i][i] = 1e-3 // channels that say the same share what they say
	}
	x := make([]float64, n)
	for r := range rows {
		for i := range channels {
			x[i] = float64(latents[r*channels+i])
		}
		x[channels] = 1
		for i, a := range x {
			for j, b := range x {
				square[i][j] += float64(a * b)
			}
			for c := range each {
				right[i][c] += float64(a * float64(colours[r*each+c]))
			}
		}
	}
	l := &Preview{channels: channels, weights: make([][]float64, each)}
	eliminate(square, right)
	for c := range each {
		for i := range n {
			l.weights[c] = append(l.weights[c], right[i][c]/square[i][i])
		}
	}
	return l, nil
}

// eliminate leaves a positive matrix its diagonal alone.
func eliminate(square, right [][]float64) {
	for i := range square {
		for j := range square {
			if j == i {
				continue
			}
			f := square[j][i] / square[i][i]
			for k := range square {
				square[j][k] -= float64(f * square[i][k])
			}
			for c := range right[j] {
				right[j][c] -= float64(f * right[i][c])
			}
		}
	}
}

// Colours are those of latents, from 0 to 255.
func (l *Preview) Colours(latents []float32) []uint8 {
	out := make([]uint8, 0, len(latents)/l.channels*len(l.weights))
	for r := 0; r+l.channels <= len(latents); r += l.channels {
		for _, w := range l.weights {
			sum := w[l.channels]
			for i, x := range latents[r:][:l.channels] {
				sum += float64(w[i] * float64(x))
			}
			out = append(out, uint8(math.Round(math.MaxUint8*min(max(sum, 0), 1))))
		}
	}
	return out
}
