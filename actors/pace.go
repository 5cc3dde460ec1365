package actors

import (
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
}

// budget returns how many rows the next step may have, at most limit. Where others wait for the device, a sequence
// alone gets no more than several would.
func (p *pace) budget(limit int, contended bool) batch.Budget {
	if p.row == 0 {
		first := min(limit, 4*minRows)
		return batch.Budget{Rows: first, Alone: first}
	}
	rows := max(minRows, int(max(stepTarget, p.waited)/p.row))
	alone := min(max(aloneRows, int(max(aloneTarget, p.waited)/p.row)), int(segmentTarget/max(p.segment, 1)))
	if contended {
		alone = rows
	}
	return batch.Budget{Rows: min(limit, rows), Alone: min(limit, max(rows, alone))}
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

// towards moves a mean to what was seen last, and at once if that is far less: then something else was measured before,
// such as kernels that were compiled.
func towards(mean, seen time.Duration) time.Duration {
	seen = max(seen, 1)
	if seen < mean/2 || mean == 0 {
		return seen
	}
	return max(mean+(seen-mean)/4, 1)
}
