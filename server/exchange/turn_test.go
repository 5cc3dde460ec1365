package exchange

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLateWorkTakesTurns: work of a small body goes on without a turn for a moment, and then waits for one as that of
// large bodies does; it ends where there is none in time.
func TestLateWorkTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := NewIntake(192<<20, 1<<20, 10*time.Second)
		request := func(client string) *Exchange { return &Exchange{Client: client, Context: t.Context(), intake: in} }
		require.NoError(t, request("a").Large(func(stop func() bool) error {
			require.False(t, stop())
			require.Zero(t, in.Turns(), "it takes no time yet")
			time.Sleep(2 * smallWork)
			require.False(t, stop())
			require.False(t, stop())
			require.EqualValues(t, 1, in.Turns())
			return nil
		}))
		require.Zero(t, in.Turns())

		var held []func()
		for range turns() {
			done, err := request("b").Turn(t.Context())
			require.NoError(t, err)
			held = append(held, done)
		}
		late := func(stop func() bool) error {
			time.Sleep(2 * smallWork)
			if stop() {
				return context.Canceled // as rendering says it
			}
			return nil
		}
		require.ErrorIs(t, request("a").Large(late), ErrCrowded)
		began := time.Now()
		time.AfterFunc(3*time.Second, held[0])
		require.NoError(t, request("a").Large(late))
		require.Equal(t, 3*time.Second, time.Since(began))
		for _, done := range held[1:] {
			done()
		}
		require.Zero(t, in.Turns())

		none := &Exchange{Context: t.Context()} // its request had no body
		require.NoError(t, none.Large(late))
	})
}
