package actors

import (
	"math"
	"time"

	"github.com/sluice-ai/sluice/stages/batch"
)

// Bounds on the time of steps. A cancelled request ends, and a waiting one is let in, only between steps; a step of
// one sequence alone can also be given up between segments when that is cancelled (law Cancel: 250 ms). Within these
// bounds steps are as long as possible, since each reads and unpacks all weights.
const (
	stepTarget    = 120 * time.Millisecond // for a step of several sequences
	segmentTarget = 120 * time.Millisecond
	aloneTarget   = time.Second // for a step of one sequence: a newcomer waits for it

	minRows   = 16  // least rows of a step
	aloneRows = 128 // rows that one sequence alone may have even if they take longer than aloneTarget
)

// pace learns how long a row takes, and bounds the rows of a step so that it keeps to its target. Chunks do not change
// results (law ChunkFree), so measuring time here cannot change an answer.
type pace struct {
	row     time.Duration // time of a row in a step
	segment time.Duration // time of a row in a segment of the slowest kind
	waited  time.Duration // mean time that a step waits for streamed weights
	answers line          // times of the steps without prompts, by their rows
	near    line          // of those of them whose answers are not deep
	shared  line          // times of all steps that have answers, none of them deep, by their rows
	fixed   int           // how many rows take as long as the part of a step's time that does not depend on rows
	known   bool          // fixed was measured
}

// aFewSteps is the number of latest steps that count most in what a line learns.
const aFewSteps = 32

// line fits a straight line through the times of steps (y, in seconds) by their rows (x). It keeps sums, in which
// older steps count for less.
type line struct{ n, x, y, xx, xy float64 }

func (l *line) add(x, y float64) {
	const keep = 1 - 1.0/aFewSteps
	*l = line{l.n*keep + 1, l.x*keep + x, l.y*keep + y, l.xx*keep + x*x, l.xy*keep + x*y}
}

// at returns what the line says of x: the mean of all y while all x are alike, and 0 if there is nothing to go by.
func (l *line) at(x float64) float64 {
	if l.n == 0 {
		return 0
	}
	y := l.y / l.n
	if slope, known := l.slope(); known {
		y += slope * (x - l.x/l.n)
	}
	return max(y, 0)
}

// slope is not known while all x are alike.
func (l *line) slope() (slope float64, known bool) {
	spread := l.n*l.xx - l.x*l.x
	if spread <= l.n*l.n/16 {
		return 0, false
	}
	return (l.n*l.xy - l.x*l.y) / spread, true
}

// crosses returns how far to the left of zero the line crosses the x axis: the number of rows that take as long as the
// part of a step's time that does not depend on rows. It is not known while all x are alike.
func (l *line) crosses() (x float64, known bool) {
	slope, known := l.slope()
	if !known {
		return 0, false
	}
	begins := (l.y - slope*l.x) / l.n
	if slope <= 0 {
		return math.MaxInt32, true
	}
	return min(max(begins/slope, 0), math.MaxInt32), true
}

// budget returns how many rows the next step may have, at most limit. If other models wait for the device (contended),
// a sequence alone gets no more rows than several would.
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

// observe learns from the times of a step and of its slowest segment, both without the wait for streamed weights,
// which is passed apart: that wait does not depend on the rows, so a step that computes for less time than it waits
// wastes what was read for it. Short steps are dominated by reading the weights from memory and say little about a
// row.
func (p *pace) observe(rows int, step, segment, waited time.Duration) {
	p.waited += (waited - p.waited) / 4
	if rows < minRows {
		return
	}
	p.row = towards(p.row, step/time.Duration(rows))
	p.segment = towards(p.segment, segment/time.Duration(rows))
}

// answered learns from the time of a step with answers, all waits included; prompts says whether it had prompts too,
// deep whether its answers attend to many positions. A row of a prompt may cost more than one of an answer, since it
// attends to more positions. fixed is counted in rows of the dearer kind, so that sequences that share a step give no
// more than their share to either. What deep answers cost is told by their positions, not by their rows.
func (p *pace) answered(rows int, took time.Duration, prompts, deep bool) {
	x, y := float64(rows), took.Seconds()
	if !prompts {
		p.answers.add(x, y)
	}
	if deep {
		return
	}
	p.shared.add(x, y)
	if !prompts {
		p.near.add(x, y)
	}
	fixed := math.Inf(1)
	for _, l := range []*line{&p.near, &p.shared} {
		if x, known := l.crosses(); known {
			fixed = min(fixed, x)
		}
	}
	if !math.IsInf(fixed, 1) {
		p.fixed, p.known = int(math.Round(fixed)), true
	}
}

// unprompted is how long a step of so many rows of answers takes without prompts, as far as is known.
func (p *pace) unprompted(rows int) time.Duration {
	return time.Duration(p.answers.at(float64(rows)) * float64(time.Second))
}

// towards moves a mean by a quarter of the way to the value seen last, and all the way if that is less than half: then
// what was measured before was something else, such as the compiling of kernels.
func towards(mean, seen time.Duration) time.Duration {
	seen = max(seen, 1)
	if seen < mean/2 || mean == 0 {
		return seen
	}
	return max(mean+(seen-mean)/4, 1)
}
