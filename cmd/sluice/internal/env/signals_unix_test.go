//go:build unix

package env

import (
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHangUp: a closed terminal ends a command as SIGTERM does, so that answers finish and records are whole; what
// nohup started goes on.
func TestHangUp(t *testing.T) {
	p := Process()
	ignored := signal.Ignored(syscall.SIGHUP) // as whoever started the test wants it
	for _, derive := range []func() (<-chan struct{}, func()){
		func() (<-chan struct{}, func()) { c, stop := p.Interruptible(t.Context()); return c.Done(), stop },
		func() (<-chan struct{}, func()) { c, stop := p.Terminable(t.Context()); return c.Done(), stop },
	} {
		if ignored {
			break
		}
		done, stop := derive()
		require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGHUP))
		<-done
		stop()
	}
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	require.NotContains(t, ends(), syscall.SIGHUP)
}
