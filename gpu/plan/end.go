package plan

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// sampledRows is how many rows are sampled at once: each takes half a MiB meanwhile.
const sampledRows = 16

// BestBytes is the memory for drawing.
func (p *Plan) BestBytes() uint64 {
	wanted := p.Capacity(true)
	return max(kernel.ArgMaxScratch(wanted), kernel.SampleScratch(min(wanted, sampledRows)))
}

// end adds what follows a shape's last segment: a check for NaN in the values that it hands on, or in the output, the
// copy of logits, and the drawing of tokens.
func (x *stream) end() {
	x.seg = x.shape.To
	switch {
	case x.program.Segments[x.seg].Kind.Ends():
		if x.rowsOf(true); x.n > 0 {
			x.output()
		}
	case x.seg == len(x.program.Segments)-1 || !x.target.computes(x.seg+1): // else a check for NaN follows later
		x.rowsOf(false)
		for _, v := range x.program.Handed(x.seg) {
			if p := x.Place(v); p.Row > 0 { // else it is part of the kernels that read it
				x.finite(x.at.Scratch+uint64(p.At), p.Row, x.program.Widths[v])
			}
		}
	}
}

// output adds what is done with the program's output: the check for NaN, the copy of logits, the drawing of tokens.
func (x *stream) output() {
	out, width := x.Place(x.program.End()), x.program.OutputWidth()
	at := x.at.Scratch + uint64(out.At)
	x.finite(at, out.Row, width)
	if x.shape.Logits {
		x.launch(&kernel.Each{Formula: kernel.Copy, A: at, AStride: out.Row, Y: x.at.Result + uint64(x.ResultLogits()),
			YStride: width, Width: width, Rows: x.n, Count: x.count(0)})
	}
	if x.shape.Draws {
		x.draw(at, out.Row, width)
	}
}

// draw adds the search for each row's likeliest token and, if some are sampled, the sampling of these.
func (x *stream) draw(logits uint64, stride, width int) {
	second := x.at.Result + ResultDrawn
	x.launch(&kernel.ArgMax{X: logits, IDs: x.at.Drawn, Second: second, Scratch: x.at.Best, Width: width, Stride: stride,
		Rows: x.n})
	if !x.shape.Samples {
		return
	}
	for from := 0; from < x.n; from += sampledRows {
		at := uint64(4 * from)
		x.launch(&kernel.Sample{Logits: logits + at*uint64(stride), Draws: x.entry(x.Entry.Draws + kernel.DrawBytes*from),
			IDs: x.at.Drawn + at, Second: second + at, Scratch: x.at.Best, Width: width, Stride: stride,
			Rows: min(sampledRows, x.n-from)})
	}
}

// finite looks for NaN in rows at an address.
func (x *stream) finite(at uint64, stride, width int) {
	x.launch(&kernel.Finite{X: at, Status: x.at.Result + ResultStatus, Count: x.count(0), Width: width, Stride: stride,
		Rows: x.n})
}

// Place is where a value lies in the scratch memory: its first byte, the number of its first float32 in a row, and the
// float32 that a row has. Row is 0 for a value that has no place.
type Place struct{ At, From, Row int }

// Place returns the place of a value that crosses a border between devices.
func (p *Plan) Place(v ir.Value) Place {
	x, ok := p.borders[p.values.Root[v]]
	if !ok || x.b == nil {
		return Place{}
	}
	from := x.from + p.values.From[v]
	return Place{At: x.b.Offset + 4*from, From: from, Row: stride(x.b)}
}
