package measure

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/stages/kvmix"
)

// shades are of a heat map, from the least to the most.
var shades = []string{"·", "░", "▒", "▓", "█"}

// heat are colours of 256 for the same (ECMA-48, SGR 38;5).
var heat = []int{244, 71, 178, 208, 196}

// drawProfile prints a profile for a person: a heat map of layers and heads, and what types lose.
func drawProfile(e *env.Env, p *kvmix.Profile) {
	fmt.Fprintf(e.Stdout, "%s: %s compared with f16\n\n", env.Printable(p.Model), env.Count(p.Tokens, "position"))
	drawHeat(e.Pane(e.Stdout), p)
	fmt.Fprintln(e.Stdout)
	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "type\tbits of K, V\tKL mean\tmedian\t99.9 %\tsame first token")
	for _, m := range p.Uniform {
		lostIn(w, typeName(m.KV[0]), &m)
	}
	lostIn(w, fmt.Sprintf("mix of %.3g", p.Mix.Bits), &p.Mix)
	_ = w.Flush()
}

func lostIn(w io.Writer, name string, m *kvmix.Measured) {
	fmt.Fprintf(w, "%s\t%.3g, %.3g\t%.5f\t%.5f\t%.4f\t%.2f %%\n", name, m.BitsK, m.BitsV, m.KLMean, m.KLMedian, m.KLP999,
		100*m.SameTop)
}

// typeName is K and V as --kv would name them.
func typeName(kv [2]string) string {
	if kv[0] == kv[1] {
		return kv[0]
	}
	return kv[0] + "/" + kv[1]
}

// shown is the type whose errors the heat map shows.
const shown = "tq3"

// drawHeat draws a row for each layer: the error of each head, and how much the model minds errors of the layer.
func drawHeat(pane env.Pane, p *kvmix.Profile) {
	at := slices.Index(p.Types, shown)
	var errors, minded []float64
	heads := 0
	for _, l := range p.Layers {
		minded = append(minded, l.K.KL, l.V.KL)
		for _, h := range slices.Concat(l.K.Heads, l.V.Heads) {
			errors = append(errors, h[at])
		}
		heads = max(heads, l.KVHeads)
	}
	error, mind := scaleOf(errors), scaleOf(minded)
	wide := max(heads, len("K heads"))
	fmt.Fprintf(pane.W, "layer  %-*s  %-*s  KL of K    KL of V    mix\n", wide, "K heads", wide, "V heads")
	for i, l := range p.Layers {
		fmt.Fprintf(pane.W, "%5d  ", i)
		for _, side := range []kvmix.Side{l.K, l.V} {
			for _, h := range side.Heads {
				fmt.Fprint(pane.W, error.shade(pane, h[at]))
			}
			fmt.Fprint(pane.W, strings.Repeat(" ", wide-len(side.Heads)+2))
		}
		for _, side := range []kvmix.Side{l.K, l.V} {
			fmt.Fprintf(pane.W, "%s %.6f ", mind.shade(pane, side.KL), side.KL)
		}
		fmt.Fprintf(pane.W, " %s\n", typeName(p.Mix.KV[i]))
	}
	fmt.Fprintf(pane.W, "\nheads: error in %s, of squares, from %s %.2g to %s %.2g; KL: what 2 bits add there, from %.2g to %.2g\n",
		shown, shades[0], error.least, shades[len(shades)-1], error.most, mind.least, mind.most)
}

// scale maps numbers to shades, by their logarithms.
type scale struct{ least, most float64 }

func scaleOf(x []float64) scale {
	s := scale{math.Inf(1), 0}
	for _, v := range x {
		if v > 0 {
			s.least, s.most = min(s.least, v), max(s.most, v)
		}
	}
	if s.most == 0 {
		s.least = 0
	}
	return s
}

// shade is a character for a number, coloured where that is understood.
func (s scale) shade(pane env.Pane, x float64) string {
	n := 0
	if x > s.least && s.most > s.least {
		n = min(int(math.Log(x/s.least)/math.Log(s.most/s.least)*float64(len(shades))), len(shades)-1)
	}
	if !pane.ANSI {
		return shades[n]
	}
	return fmt.Sprintf("\x1b[38;5;%dm%s\x1b[39m", heat[n], shades[n])
}
