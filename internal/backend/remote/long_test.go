package remote

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// piped has a lender serve what is dialled through pipes of this process.
func piped(t *testing.T, l *Lender) func(context.Context) (net.Conn, string, error) {
	t.Cleanup(l.Close)
	return func(context.Context) (net.Conn, string, error) {
		here, there := net.Pipe()
		go func() { _ = l.Serve(there) }()
		return here, "attic", nil
	}
}

// TestLong: a step that takes a lender longer than silence means is waited for, since it says that it is there.
func TestLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := small(t)
		d := held{ref.New(), make(chan struct{})}
		far, err := Open(Options{Addr: "attic", Build: "1", Dial: piped(t, &Lender{Build: "1", Device: d, Lends: 1 << 30})})
		require.NoError(t, err)
		x := on(t, far, m, c)
		done := send(t, x, m, 0)
		time.Sleep(10 * silence)
		close(d.let)
		require.NoError(t, <-done)
		require.NoError(t, x.Close())
	})
}

// failing is a device of which the first step fails, when it is let.
type failing struct{ held }

func (d failing) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.held.Compile(p, c)
	return &failingModel{Model: m}, err
}

type failingModel struct {
	backend.Model
	failed bool
}

func (m *failingModel) Finish(s *backend.Step, done func(error)) {
	m.Model.Finish(s, func(err error) {
		if !m.failed {
			m.failed, err = true, errors.New("a page is gone")
		}
		done(err)
	})
}

// TestStruck: a step that fails there fails those that were sent behind it, and none that is sent later.
func TestStruck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := small(t)
		d := failing{held{ref.New(), make(chan struct{})}}
		far, err := Open(Options{Addr: "attic", Build: "1", Dial: piped(t, &Lender{Build: "1", Device: d, Lends: 1 << 30})})
		require.NoError(t, err)
		x := on(t, far, m, c)
		first, second := send(t, x, m, 0), send(t, x, m, 1)
		close(d.let)
		for _, done := range []<-chan error{first, second} {
			err := <-done
			require.EqualError(t, err, "attic: a page is gone")
			require.NotErrorIs(t, err, backend.ErrLost)
		}
		require.NoError(t, <-send(t, x, m, 0))
		require.NoError(t, x.Close())
	})
}
