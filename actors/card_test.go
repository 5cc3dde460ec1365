package actors

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/internal/backend"
)

// Two models share a card that is opened once: they enter, answer as each does alone, and leave. A card that is lost
// while both answer is opened once more, and both go on with the same answers, to the bit.
func TestTwoModelsOnOneCard(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	var opened atomic.Int64
	var last atomic.Pointer[null.Device]
	open := func() backend.Device {
		d, err := exec.New(func() (driver.Device, error) {
			card := null.Open(null.Options{Free: 4 << 30})
			opened.Add(1)
			last.Store(card)
			return card, nil
		})
		require.NoError(t, err)
		return d
	}
	all, names := shortPrompts(), []string{fixture, "llama"}
	want := map[string][]string{}
	for _, name := range names {
		e := startFixture(t, name, func(c *Config) {
			require.NoError(t, c.Device.Close())
			c.Device, c.Context, c.Blocks, c.Sequences, c.Rows = open(), 256, 9, 4, 64
		})
		want[name] = alone(t, e, all, 30)
		shut(t, e)
	}
	opened.Store(0)
	h := emptyHouse(t, open())
	var engines []*Engine
	for _, name := range names {
		e, err := h.Enter(t.Context(), modelOf(t, name))
		require.NoError(t, err)
		engines = append(engines, e)
	}
	require.Equal(t, int64(1), opened.Load())
	first := answering(t, engines[0], all, want[names[0]])
	second := answering(t, engines[1], all, want[names[1]])
	first.more(t, 2)
	second.more(t, 2)
	last.Load().Lose(fmt.Errorf("%w: unplugged", backend.ErrLost))
	first.more(t, 2)
	second.more(t, 2)
	require.Equal(t, int64(2), opened.Load())
	second.stop()
	require.NoError(t, engines[1].Leave(t.Context()))
	first.more(t, 1)
	first.stop()
	require.Equal(t, int64(2), opened.Load())
}
