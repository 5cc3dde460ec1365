package remote

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/quant"
)

// processor is the CPU with so many threads.
func processor(t testing.TB, threads int) backend.Device {
	d, err := cpu.New(threads, "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// lending is a lender of a device on a loopback address, and who dials it.
func lending(t testing.TB, l *Lender, ends func(error)) func(context.Context) (net.Conn, string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	var served sync.WaitGroup
	go func() {
		defer close(ended)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			served.Go(func() { ends(l.Serve(conn)) })
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, ln.Close())
		<-ended
		l.Close()
		served.Wait()
	})
	return func(ctx context.Context) (net.Conn, string, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
		return conn, "attic", err
	}
}

// well wants connections to end as they should.
func well(t testing.TB) func(error) {
	return func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
}

// anyhow lets connections end in any way.
func anyhow(error) {}

// lent is a device of another process, in this one.
func lent(t testing.TB, d backend.Device) *Device {
	far, err := Open(Options{Addr: "attic:7777", Build: "1", Like: d,
		Dial: lending(t, &Lender{Build: "1", Device: d, Lends: 8 << 30}, well(t))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, far.Close()) })
	return far
}

var types = []quant.Type{quant.F32, quant.Q8_0, quant.Q4_K}

// TestConformance: a device that is lent is held to what all devices are, by bits.
func TestConformance(t *testing.T) {
	backendtest.Conformance(t, lent(t, processor(t, 2)), ref.New(), types)
}

// TestDivided: the processor and one that is lent compute what one does, however programs are divided.
func TestDivided(t *testing.T) {
	d := compose.New(processor(t, 1), lent(t, processor(t, 2)))
	backendtest.Divided(t, d, ref.New(), types)
}
