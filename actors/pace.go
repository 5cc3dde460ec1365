package actors

import "time"

// stepTarget bounds how long a step of many rows should take: a cancelled request stops computing, and a waiting
// one is let in, only between steps (law Cancel: 250 ms).
const stepTarget = 120 * time.Millisecond

// pace learns how long a row takes and bounds the rows of a step by it. Chunks do not change results (law
// ChunkFree), so measuring time here cannot change an answer.
type pace struct{ row time.Duration }

const minRows = 16

// rows returns how many rows the next step may have, at most limit.
func (p *pace) rows(limit int) int {
	if p.row == 0 {
		return min(limit, 4*minRows)
	}
	return min(limit, max(minRows, int(stepTarget/p.row)))
}

// observe takes the duration of a step. Short steps are dominated by reading the weights and say little about a row.
func (p *pace) observe(rows int, took time.Duration) {
	if rows < minRows {
		return
	}
	each := max(took/time.Duration(rows), 1)
	if p.row == 0 {
		p.row = each
	}
	p.row += (each - p.row) / 4
}
