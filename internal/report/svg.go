package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// Sizes of the picture in pixels. It has two panels of tokens per second by point, for prefill and decoding, and
// below them a bar for each phase, divided by where its time goes.
const (
	panelWidth, panelHeight = 420, 220
	marginLeft, marginTop   = 70, 80
	gap                     = 90
	barHeight, barStep      = 18, 30
	pictureWidth            = 2*marginLeft + 2*panelWidth + gap
)

// colours distinguish series and segments, also for people who cannot tell red from green.
var colours = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"}

func colour(i int) string { return colours[max(i, 0)%len(colours)] }

// kindColour returns the colour of a kind of segments, the same in all pictures.
func kindColour(name string) string {
	return colour(slices.Index([]string{"embed", "mix", "ffn", "head", "route", "experts", "pool"}, name))
}

// kinds returns the names of the segments that the results have, in the order of their numbers.
func (b *Bench) kinds() []string {
	return slices.DeleteFunc(kinds(), func(name string) bool {
		return !slices.ContainsFunc(b.Points, func(p Point) bool {
			return slices.ContainsFunc(p.halves(), func(h half) bool {
				return slices.ContainsFunc(h.Segments, func(s Segment) bool { return s.Name == name })
			})
		})
	})
}

// SVG draws the results.
func (b *Bench) SVG(w io.Writer) error {
	bars := marginTop + panelHeight + 110
	s := &picture{}
	height := bars + 2*len(b.Points)*barStep + 30
	s.f(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" `+
		`font-family="sans-serif" font-size="12">`, pictureWidth, height)
	s.f(`<rect width="100%%" height="100%%" fill="white"/>`)
	s.text(marginLeft, 24, "start", `font-size="16" font-weight="bold"`, b.Model)
	s.text(marginLeft, 44, "start", `fill="#555"`, b.Machine+", "+b.setting())
	for i, h := range b.Points[0].halves() { // all points have the same
		x := marginLeft + i*(panelWidth+gap)
		s.panel(x, marginTop, h.name+", tokens/s by "+b.axis(), b.labels(), b.series(i))
	}
	s.legend(marginLeft, marginTop+panelHeight+45, names(b.series(0)), colour)
	s.text(marginLeft, bars-20, "start", `font-weight="bold"`, "where the time of a step goes")
	s.legend(marginLeft+260, bars-20, b.kinds(), func(i int) string { return kindColour(b.kinds()[i]) })
	y := bars
	for i := range b.Points {
		for _, h := range b.Points[i].halves() {
			s.bar(y, fmt.Sprintf("%s %d at %d", h.name, h.tokens, b.Points[i].Depth), h.Segments)
			y += barStep
		}
	}
	s.f(`</svg>`)
	_, err := io.WriteString(w, s.String())
	return err
}

// series is a line of a panel: a value for each point.
type series struct {
	name   string
	values []Spread
}

func names(all []series) (out []string) {
	for _, s := range all {
		out = append(out, s.name)
	}
	return out
}

// series returns our rates and the peers' in one phase of the points.
func (b *Bench) series(half int) []series {
	all := []series{{name: "sluice"}}
	for i := range b.Points {
		h := b.Points[i].halves()[half]
		all[0].values = append(all[0].values, h.Rate)
		for j, peer := range h.Peers {
			if len(all) < j+2 {
				all = append(all, series{name: peer.Name})
			}
			all[j+1].values = append(all[j+1].values, peer.Rate)
		}
	}
	return all
}

// manyPrompts reports whether points differ by more than depth.
func (b *Bench) manyPrompts() bool {
	for i := range b.Points {
		if b.Points[i].Prompt != b.Points[0].Prompt {
			return true
		}
	}
	return false
}

func (b *Bench) axis() string {
	if b.manyPrompts() {
		return "prompt@depth"
	}
	return "depth"
}

func (b *Bench) labels() (out []string) {
	for _, p := range b.Points {
		label := fmt.Sprint(p.Depth)
		if b.manyPrompts() {
			label = fmt.Sprintf("%d@%d", p.Prompt, p.Depth)
		}
		out = append(out, label)
	}
	return out
}

// picture is an SVG text that is being written.
type picture struct{ strings.Builder }

func (p *picture) f(format string, a ...any) { fmt.Fprintf(p, format+"\n", a...) }

func (p *picture) text(x, y int, anchor, style, text string) {
	p.f(`<text x="%d" y="%d" text-anchor="%s" %s>%s</text>`, x, y, anchor, style, html.EscapeString(text))
}

// panel draws lines over labels at equal distances, with a whisker from the minimum to the maximum of each value.
func (p *picture) panel(left, top int, title string, labels []string, lines []series) {
	most := 0.0
	for _, l := range lines {
		for _, v := range l.values {
			most = max(most, v.Max)
		}
	}
	most = nice(most)
	bottom := top + panelHeight
	x := func(i int) int { return left + (2*i+1)*panelWidth/(2*len(labels)) }
	y := func(v float64) float64 { return float64(bottom) - v/most*panelHeight }
	p.text(left, top-10, "start", `font-weight="bold"`, title)
	for i := range 5 {
		v := most * float64(i) / 4
		p.f(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1[3]f" stroke="#ddd"/>`, left, left+panelWidth, y(v))
		p.text(left-8, int(y(v))+4, "end", `fill="#555"`, fmt.Sprintf("%.4g", v))
	}
	for i, label := range labels {
		p.text(x(i), bottom+18, "middle", `fill="#555"`, label)
	}
	for i, l := range lines {
		var points []string
		for j, v := range l.values {
			points = append(points, fmt.Sprintf("%d,%.1f", x(j), y(v.Median)))
			p.f(`<line x1="%d" x2="%[1]d" y1="%.1f" y2="%.1f" stroke="%s"/>`, x(j), y(v.Min), y(v.Max), colour(i))
			p.f(`<circle cx="%d" cy="%.1f" r="3.5" fill="%s"/>`, x(j), y(v.Median), colour(i))
		}
		p.f(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.Join(points, " "), colour(i))
	}
}

// nice returns a round number at or above x.
func nice(x float64) float64 {
	if x <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, step := range []float64{1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10} {
		if step*unit >= x {
			return step * unit
		}
	}
	return 10 * unit
}

// legend draws the names of colours in a row.
func (p *picture) legend(x, y int, names []string, colour func(i int) string) {
	for i, name := range names {
		p.f(`<rect x="%d" y="%d" width="12" height="12" fill="%s"/>`, x, y-10, colour(i))
		p.text(x+18, y, "start", "", name)
		x += 40 + 7*len([]rune(name))
	}
}

// bar draws the division of a step's time; segments have their share of the ceiling, if there is room.
func (p *picture) bar(y int, label string, segments []Segment) {
	const left = marginLeft + 130
	const width = pictureWidth - left - marginLeft
	p.text(left-10, y+13, "end", "", label)
	at := float64(left)
	for i := range segments {
		s := &segments[i]
		w := s.Share * width
		fill := kindColour(s.Name)
		p.f(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`, at, y, w, barHeight, fill)
		what, of := "reading", s.OfBandwidth
		if s.OfMultiply > of {
			what, of = "multiplying", s.OfMultiply
		}
		short := fmt.Sprintf("%.0f %%", 100*of)
		for _, note := range []string{fmt.Sprintf("%.3g ms, %s of %s", 1e3*s.Seconds, short, what), short} {
			if float64(7*len(note)) < w {
				p.text(int(at+w/2), y+13, "middle", `fill="white"`, note)
				break
			}
		}
		at += w
	}
}
