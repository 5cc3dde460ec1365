package actors

import (
	"math"
	"time"

	"github.com/sluice-ai/sluice/stages/batch"
)

// What a cancelled request computes ends, and a waiting one is let in, only between steps; a step of one sequence is
// given up between segments as well, when that is cancelled (law Cancel: 250 ms). Long steps are faster: each reads and
// unpacks all weights.
const (
	stepTarget    = 120 * time.Millisecond // of several sequences
	segmentTarget = 120 * time.Millisecond
	aloneTarget   = time.Second // of one sequence: a newcomer waits for it

	minRows   = 16  // of a step
	aloneRows = 128 // of one sequence, even where it takes longer than aloneTarget
)

// pace learns how long a row takes and bounds the rows of a step by it. Chunks do not change results (law
// ChunkFree), so measuring time here cannot change an answer.
type pace struct {
	row     time.Duration // of a step
	segment time.Duration // of the slowest kind of segment
	waited  time.Duration // by a step, for weights that are streamed
	answers line          // by the rows of steps that have no prompts
	shared  line          // by those of all steps that have answers
	fixed   int           // rows that take as long as a step of answers does without any
	known   bool
}

// aFewSteps is how many steps weigh most of all in what is learned of them.
const aFewSteps = 32

// line is the straight one through the times of steps by their rows: sums, of which older ones count for less.
type line struct{ n, x, y, xx, xy float64 }

func (l *line) add(x, y float64) {
	const keep = 1 - 1.0/aFewSteps
	*l = line{l.n*keep + 1, l.x*keep + x, l.y*keep + y, l.xx*keep + x*x, l.xy*keep + x*y}
}

// crosses is where it crosses the axis, to the left of zero: how many steps of x are as much as the line begins with.
// Nothing is known while all x are alike.
func (l *line) crosses() (x float64, known bool) {
	spread := l.n*l.xx - l.x*l.x
	if spread <= l.n*l.n/16 {
		return 0, false
	}
	slope := (l.n*l.xy - l.x*l.y) / spread
	begins := (l.y - slope*l.x) / l.n
	if slope <= 0 {
		return math.MaxInt32, true
	}
	return min(max(begins/slope, 0), math.MaxInt32), true
}

// budget returns how many rows the next step may have, at most limit. Where others wait for the device, a sequence
// alone gets no more than several would.
func (p *pace) budget(limit int, contended bool) batch.Budget {
	fixed := minRows // a guess
	if p.known {
		fixed = min(limit, p.fixed)
	}
	if p.row == 0 {
		first := min(limit, 4*minRows)
		return batch.Budget{Rows: first, Alone: first, Fixed: fixed}
	}
	rows := max(minRows, int(max(stepTarget, p.waited)/p.row))
	alone := min(max(aloneRows, int(max(aloneTarget, p.waited)/p.row)), int(segmentTarget/max(p.segment, 1)))
	if contended {
		alone = rows
	}
	return batch.Budget{Rows: min(limit, rows), Alone: min(limit, max(rows, alone)), Fixed: fixed}
}

// observe takes the durations of a step and of its slowest segment, without what it waited for weights: that is the
// same for many rows as for few, and a step that computes for less long wastes what was read for it. Short steps are
// dominated by reading the weights from memory and say little about a row.
func (p *pace) observe(rows int, step, segment, waited time.Duration) {
	p.waited += (waited - p.waited) / 4
	if rows < minRows {
		return
	}
	p.row = towards(p.row, step/time.Duration(rows))
	p.segment = towards(p.segment, segment/time.Duration(rows))
}

// answered takes how long a step took that had answers, with all that it waited for, and whether it had prompts too. A
// row of a prompt may cost more than one of an answer, for all the positions that it sees: what is fixed counts in the
// dearer rows of both, so that whoever shares a step gives no more than its share to either.
func (p *pace) answered(rows int, took time.Duration, prompts bool) {
	p.shared.add(float64(rows), took.Seconds())
	if !prompts {
		p.answers.add(float64(rows), took.Seconds())
	}
	fixed := math.Inf(1)
	for _, l := range []*line{&p.answers, &p.shared} {
		if x, known := l.crosses(); known {
			fixed = min(fixed, x)
		}
	}
	if !math.IsInf(fixed, 1) {
		p.fixed, p.known = int(math.Round(fixed)), true
	}
}

// towards moves a mean to what was seen last, and at once if that is far less: then something else was measured before,
// such as kernels that were compiled.
func towards(mean, seen time.Duration) time.Duration {
	seen = max(seen, 1)
	if seen < mean/2 || mean == 0 {
		return seen
	}
	return max(mean+(seen-mean)/4, 1)
}
