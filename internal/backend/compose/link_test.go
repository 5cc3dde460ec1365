package compose

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
)

// TestRoom: values that are between devices at the same time have memory of their own; the others share it, so
// that a model of many layers takes no more than one of few.
func TestRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segments := rapid.IntRange(2, 60).Draw(t, "segments")
		m := &links{hands: make([][]*link, segments)}
		rows := rapid.IntRange(1, 3).Draw(t, "rows")
		handed, most := map[*link]int{}, 0
		for s := range segments - 1 {
			for range rapid.IntRange(0, 3).Draw(t, "values") {
				x := &link{value: ir.Value(len(handed)), width: rapid.IntRange(1, 3).Draw(t, "width"),
					taken: rapid.IntRange(s+1, min(s+3, segments-1)).Draw(t, "taken")}
				m.hands[s] = append(m.hands[s], x)
				handed[x] = s
			}
		}
		require.NoError(t, m.room(rows))
		defer func() { require.NoError(t, mem.Free(m.memory)) }()
		for x, from := range handed {
			require.Len(t, x.rows, x.width*rows)
			for y, at := range handed {
				if x != y && from <= at && at < x.taken {
					require.NotSame(t, &x.rows[0], &y.rows[0])
				}
			}
		}
		for s := range segments {
			now := 0
			for x, from := range handed {
				if from <= s && s < x.taken {
					now += 4 * x.width * rows
				}
			}
			most = max(most, now)
		}
		require.LessOrEqual(t, len(m.memory), 4*9*3*4*rows+64<<10, "whatever the number of segments")
		require.GreaterOrEqual(t, len(m.memory), most)
	})
}
