package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// table is rows of cells below a head. The first column is text, the others are numbers.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// Text writes the results for a terminal.
func (b *Bench) Text(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", strings.Join(b.about(), "\n"))
	for _, t := range b.tables() {
		out.WriteString("\n")
		t.align(&out)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// align appends the table with columns of equal width, numbers to the right.
func (t *table) align(out *strings.Builder) {
	lines := append([][]string{t.head}, t.rows...)
	widths := make([]int, len(t.head))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		row := fmt.Sprintf("%-*s", widths[0], line[0])
		for i, cell := range line[1:] {
			row += fmt.Sprintf("  %*s", widths[i+1], cell)
		}
		fmt.Fprintln(out, strings.TrimRight(row, " "))
	}
}

// Markdown writes the results as Markdown.
func (b *Bench) Markdown(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", strings.Join(b.about(), "  \n"))
	for _, t := range b.tables() {
		fmt.Fprintf(&out, "\n| %s |\n|%s\n", strings.Join(t.head, " | "), strings.Repeat(" ---: |", len(t.head)))
		for _, row := range t.rows {
			fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// about returns lines about the machine, the model and the settings.
func (b *Bench) about() []string {
	lines := []string{
		b.Model + ": " + b.setting(),
		b.Machine + b.program(),
		fmt.Sprintf("loaded %.2f GB in %.2f s, %.1f GB/s%s", float64(b.WeightBytes)/1e9, b.LoadSeconds,
			float64(b.WeightBytes)/1e9/max(b.LoadSeconds, 1e-3), b.peak()),
	}
	if b.Copied > 0 && b.Bus > 0 && len(b.Points) > 0 {
		rate := b.Copied * b.Points[0].Decode.Rate.Median
		lines = append(lines, fmt.Sprintf("copied to the device for each token: %.2f GB; decoding copies %.1f GB/s, %.0f %% of "+
			"the %.1f that copies reach", b.Copied/1e9, rate/1e9, 100*rate/b.Bus, b.Bus/1e9))
	}
	lines = append(lines, b.expected()...)
	if b.Beside {
		return lines
	}
	return append(lines,
		fmt.Sprintf("ceilings: reading %.1f GB/s (at best %.1f)%s", b.ReadBandwidth/1e9, b.ReadBest/1e9, b.multiply()),
		fmt.Sprintf("the actors' share of a step: %.2f %%", 100*b.ActorsShare),
	)
}

// expected compares measured and predicted speed, if weights stream.
func (b *Bench) expected() (lines []string) {
	if b.Expected == 0 || len(b.Points) == 0 {
		return nil
	}
	p := &b.Points[0]
	lines = append(lines, fmt.Sprintf("the plan expects decoding at %s tokens/s; this is %.2f times that",
		tokensRate(b.Expected), p.Decode.Rate.Median/b.Expected))
	if p.Cold != nil {
		line := fmt.Sprintf("in the run before, from cold: reading the prompt %s, decoding %s tokens/s",
			tokensRate(p.Cold.Prefill), tokensRate(p.Cold.Decode))
		if b.ExpectedCold > 0 {
			line += fmt.Sprintf("; the plan expects %s, this is %.2f times that", tokensRate(b.ExpectedCold),
				p.Cold.Decode/b.ExpectedCold)
		}
		lines = append(lines, line)
	}
	return lines
}

// setting describes what the figures depend on besides model and machine.
func (b *Bench) setting() string {
	s := fmt.Sprintf("%s, %s, %s, cache %s", count(b.Threads, "thread"), count(b.Seqs, "sequence"), b.Device, b.Cache)
	if b.NoRepack {
		s += ", not repacked"
	}
	return s
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// program returns the version of sluice, if it is known.
func (b *Bench) program() string {
	if b.Commit == "" {
		return ""
	}
	return ", sluice " + b.Commit
}

func (b *Bench) peak() string {
	if b.PeakBytes == 0 {
		return ""
	}
	return fmt.Sprintf(", peak memory %.2f GB", float64(b.PeakBytes)/1e9)
}

func (b *Bench) multiply() string {
	if b.MultiplyOps == 0 {
		return ""
	}
	return fmt.Sprintf(", multiplying %.0f GOP/s (at best %.0f)", b.MultiplyOps/1e9, b.MultiplyBest/1e9)
}

// tables returns the tables of rates, ratios and segments.
func (b *Bench) tables() []*table {
	rates := &table{head: []string{"", "depth", "tokens", "tokens/s", "min", "max"}}
	ratios := &table{head: []string{"", "depth", "tokens", "ours", "theirs", "ratio", "min", "max", "peer"}}
	segments := &table{head: []string{"", "depth", "tokens", "segment", "ms/step", "time", "GB/s", "of reading",
		"GOP/s", "of multiplying"}}
	for i := range b.Points {
		p := &b.Points[i]
		for _, half := range p.rates() {
			at := []string{half.name, fmt.Sprint(p.Depth), fmt.Sprint(half.tokens)}
			rates.add(append(at, figures(half.Rate)...)...)
			for _, peer := range half.Peers {
				cells := append(at, tokensRate(half.Rate.Median), tokensRate(peer.Rate.Median))
				ratios.add(append(append(cells, factors(peer.Ratio)...), peer.Name)...)
			}
			for _, s := range half.Segments {
				segments.add(append(at, s.cells()...)...)
			}
			for _, g := range half.Gaps {
				segments.add(append(at, "gap: "+strings.ReplaceAll(g.Cause, "_", " "), fmt.Sprintf("%.3f", 1e3*g.Seconds),
					fmt.Sprintf("%.1f %%", 100*g.Share), "", "", "", "")...)
			}
		}
	}
	return slices.DeleteFunc([]*table{rates, ratios, segments}, func(t *table) bool {
		return t != rates && len(t.rows) == 0
	})
}

// half is a phase with its name and number of tokens.
type half struct {
	*Phase
	name   string
	tokens int
}

// halves returns the phases; for a model that generates nothing, the first only.
func (p *Point) halves() []half {
	if p.Generate == 0 {
		return []half{{&p.Prefill, "embed", p.Prompt}}
	}
	return []half{{&p.Prefill, "prefill", p.Prompt}, {&p.Decode, "decode", p.Generate}}
}

// rates returns the phases, and the steps of the second one.
func (p *Point) rates() []half {
	if p.Generate == 0 {
		return p.halves()
	}
	return append(p.halves(), half{&p.Step, "a step", p.Generate})
}

func figures(s Spread) []string {
	return []string{tokensRate(s.Median), tokensRate(s.Min), tokensRate(s.Max)}
}

// tokensRate formats tokens per second; slow rates have another digit.
func tokensRate(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

func factors(s Spread) []string {
	return []string{fmt.Sprintf("%.2fx", s.Median), fmt.Sprintf("%.2fx", s.Min), fmt.Sprintf("%.2fx", s.Max)}
}

func (s *Segment) cells() []string {
	return []string{s.Name, fmt.Sprintf("%.3f", 1e3*s.Seconds), fmt.Sprintf("%.1f %%", 100*s.Share),
		fmt.Sprintf("%.2f", s.BytesRate/1e9), fmt.Sprintf("%.0f %%", 100*s.OfBandwidth),
		fmt.Sprintf("%.1f", s.OpsRate/1e9), fmt.Sprintf("%.1f %%", 100*s.OfMultiply)}
}
