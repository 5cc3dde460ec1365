package batch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/kv"
)

// crowd computes n answers of so many tokens in so many blocks, and returns the rows and steps that this took. Tokens
// are the sequence's number: only how much is computed counts here.
func crowd(t *testing.T, clients, n, length, blocks int) (rows, steps int) {
	m := newSimOf(t, Limits{Seqs: 32, Rows: 512, Wanted: 64, Beside: 128}, 1, kv.Class{Blocks: blocks})
	for id := ID(1); int(id) <= n; id++ {
		m.submitOf(string("ab"[int(id)%clients]), id, prompt(3, int32(id)*10), length)
	}
	var step backend.Step
	var parts []Part
	for idle := 0; m.state.Len() > 0; {
		for m.serveKV() {
		}
		var hopeless *Seq
		parts, hopeless = m.state.Plan(&step, parts, Budget{Rows: 512, Alone: 512})
		require.Nil(t, hopeless)
		if len(parts) == 0 {
			idle++
			require.Less(t, idle, 1_000_000)
			continue
		}
		steps, rows = steps+1, rows+len(step.Tokens)
		for _, p := range parts {
			if m.state.Advance(p, 0); p.Wanted > 0 {
				m.state.Append(p.Seq, int32(p.Seq.ID))
				m.state.Consumed(p.Seq, p.Seq.Sent())
			}
		}
	}
	return rows, steps
}

// TestAnswersThatDoNotFitTogether: where the blocks hold a few of the answers that have places, one of them that gives
// way does not come back until another has ended: else it would have the others give way in turn, for each block that
// they need. So less is computed again than is computed, and steps have more rows than if no more were let in than fit.
func TestAnswersThatDoNotFitTogether(t *testing.T) {
	const answers, length, fit = 40, 4096, 4
	for _, clients := range []int{1, 2} {
		rows, steps := crowd(t, clients, answers, length, fit*length/backend.BlockSize)
		t.Logf("%d clients: %d rows and %d steps for %d tokens", clients, rows, steps, answers*length)
		require.LessOrEqual(t, rows, 2*answers*length)
		require.LessOrEqual(t, steps, answers/fit*length)
	}
}
