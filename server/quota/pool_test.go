package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// take asks in the background and says by name when it was granted.
func take(t *testing.T, p *Pool, to chan string, client string, units int64) {
	go func() {
		if err := p.Take(t.Context(), client, units, 1<<60); err != nil {
			to <- client + ": " + err.Error()
			return
		}
		to <- client
	}()
	synctest.Wait()
}

// TestAloneTakesAll: a share binds only while others wait; then who has least is next, however many one asks for.
func TestAloneTakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, got := NewPool(4, 100), make(chan string, 100)
		for range 4 {
			take(t, p, got, "greedy", 1)
		}
		require.Len(t, got, 4)
		for range 20 {
			take(t, p, got, "greedy", 1)
		}
		take(t, p, got, "modest", 1)
		take(t, p, got, "modest", 1)
		take(t, p, got, "late", 1)
		require.Len(t, got, 4, "all of it is taken")
		for range 4 {
			<-got
		}
		require.True(t, p.Wanted())
		for _, want := range []string{"modest", "late"} {
			p.Give("greedy", 1)
			require.Equal(t, want, <-got)
		}
		p.Give("greedy", 1)
		require.Equal(t, "greedy", <-got)
		p.Give("greedy", 1) // who waits has as much: in turns
		require.Equal(t, "modest", <-got)
		for range 19 {
			p.Give("greedy", 1)
			require.Equal(t, "greedy", <-got)
		}
		require.Zero(t, p.Waiting())
	})
}

// TestTurns: where there is one place, clients take turns, however many of one wait.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, got := NewPool(1, 100), make(chan string, 100)
		for range 9 {
			take(t, p, got, "greedy", 1)
		}
		take(t, p, got, "modest", 1)
		take(t, p, got, "late", 1)
		take(t, p, got, "late", 1)
		for _, want := range []string{"greedy", "modest", "late", "greedy", "late", "greedy", "greedy"} {
			require.Equal(t, want, <-got)
			p.Give(want, 1)
		}
		for range 5 {
			require.Equal(t, "greedy", <-got)
			p.Give("greedy", 1)
		}
	})
}

// TestLimits: who wants too much at a time waits, and does not hold up who wants little; alone, anybody has anything.
func TestLimits(t *testing.T) {
	ctx := t.Context()
	p := NewPool(100, 10)
	require.NoError(t, p.Take(ctx, "a", 500, 50), "nobody has any")
	p.Give("a", 500)
	require.NoError(t, p.Take(ctx, "a", 40, 50))
	gone, cancel := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Take(gone, "b", 20, 50) }()
	require.NoError(t, p.Take(ctx, "c", 30, 100))
	left := errors.New("left")
	cancel(left)
	require.ErrorIs(t, <-ended, left)
	require.EqualValues(t, 70, p.Used())
	require.Zero(t, p.Waiting())
}

// TestCrowd: the queue is bounded, and who fills it is refused, not who comes last.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, got := NewPool(1, 5), make(chan string, 100)
		take(t, p, got, "greedy", 1)
		<-got
		for range 5 {
			take(t, p, got, "greedy", 1)
		}
		require.Empty(t, got)
		take(t, p, got, "modest", 1)
		require.Equal(t, "greedy: "+ErrFull.Error(), <-got)
		has := "greedy"
		for _, want := range []string{"modest", "greedy", "greedy", "greedy", "greedy"} {
			p.Give(has, 1)
			require.Equal(t, want, <-got)
			has = want
		}
		require.Zero(t, p.Waiting())
	})
}

// TestAccounts: whatever the order of taking, leaving and giving, no more is granted than there is, and all comes back.
func TestAccounts(t *testing.T) {
	p := NewPool(64, 20)
	done := make(chan error)
	for i := range 16 {
		go func() {
			random := rand.New(rand.NewPCG(uint64(i), 0))
			client := fmt.Sprint(i % 5)
			for range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				if random.IntN(3) == 0 {
					go cancel()
				}
				n := 1 + random.Int64N(40)
				if err := p.Take(ctx, client, n, 64); err == nil {
					if used := p.Used(); used > 64 || used < n {
						done <- fmt.Errorf("%d are used", used)
						cancel()
						return
					}
					p.Give(client, n)
				}
				cancel()
			}
			done <- nil
		}()
	}
	for range 16 {
		require.NoError(t, <-done)
	}
	require.Zero(t, p.Used())
	require.Zero(t, p.Waiting())
	require.Empty(t, p.held)
}

// TestLimit: with a limit by clients a client that asks for everything leaves units for others, fewer the more there
// are; what it has it keeps.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(12, 100).Limit(func(clients int) int64 { return int64(6/clients) + 1 })
		got := make(chan string, 100)
		ask := func(client string, n, granted int) {
			t.Helper()
			for range n {
				take(t, p, got, client, 1)
			}
			require.Len(t, got, granted)
			for range granted {
				require.Equal(t, client, <-got)
			}
		}
		ask("a", 20, 7)
		ask("b", 20, 4)
		ask("c", 1, 1)
		require.EqualValues(t, 12, p.Used())
		ask("d", 1, 0)
		for range 5 {
			p.Give("a", 1)
		}
		require.Equal(t, "d", <-got, "who has least")
		require.Empty(t, got, "a has two, b four: four clients may have two each")
		p.Give("a", 1)
		require.Equal(t, "a", <-got)
	})
}
