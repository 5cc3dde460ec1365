package actors

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
	"github.com/sluice-ai/sluice/internal/backend/remote"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
)

// attic is a lender behind a loopback address, whose connections a test can cut.
type attic struct {
	lender *remote.Lender
	ln     net.Listener
	mu     sync.Mutex
	conns  []net.Conn
	served sync.WaitGroup
}

func openAttic(t *testing.T) *attic {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	a := &attic{lender: &remote.Lender{Build: "1", Device: devicetest.Processor(t, ""), Lends: 4 << 30}, ln: ln}
	a.served.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			a.mu.Lock()
			a.conns = append(a.conns, conn)
			a.mu.Unlock()
			a.served.Go(func() { _ = a.lender.Serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		a.lender.Close()
		a.served.Wait()
		require.NoError(t, a.lender.Device.Close())
	})
	return a
}

// cut breaks all connections, as a network or a process that dies does.
func (a *attic) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, conn := range a.conns {
		_ = conn.Close()
	}
	a.conns = nil
}

// beside has the last layers computed in the attic.
func (a *attic) beside(t *testing.T, layers int) func(*Config) {
	return func(c *Config) {
		require.NoError(t, c.Device.Close())
		host := devicetest.Processor(t, "")
		far, err := remote.Open(remote.Options{Addr: "attic", Build: "1", Like: host,
			Dial: func(ctx context.Context) (net.Conn, string, error) {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", a.ln.Addr().String())
				return conn, "attic", err
			}})
		require.NoError(t, err)
		c.Device, c.Layers = compose.New(host, far), layers
	}
}

// TestOverMembers: laws RowAlone and Recompute, for models of which another process computes the last layers, states
// and experts among them: answers are those of one.
func TestOverMembers(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	for name, layers := range map[string]int{fixture: 1, "gemma2": 1, "qwen3moe": 1, "qwen3next": 2} {
		t.Run(fmt.Sprintf("%s, %d layers", name, layers), func(t *testing.T) {
			all := prompts(6)
			want := alone(t, startFixture(t, name, nil), all, 24)
			e := startFixture(t, name, openAttic(t).beside(t, layers))
			require.True(t, e.Plan().Divided())
			require.Positive(t, e.Plan().ByTier()[place.Device])
			require.Equal(t, want[:1], alone(t, e, all[:1], 24), "alone")
			together(t, e, all, want)
		})
	}
}

// TestMemberIsCut: a member whose connections break in the middle of answers is connected to again, and the answers go
// on to the same tokens.
func TestMemberIsCut(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(6)
	want := alone(t, startFixture(t, fixture, nil), all, 60)
	a, steps := openAttic(t), atomic.Int64{}
	a.lender.Device = heardDevice{a.lender.Device, func() {
		if n := steps.Add(1); n == 40 || n == 90 {
			a.cut()
		}
	}}
	e := startFixture(t, fixture, a.beside(t, 1))
	together(t, e, all, want)
	require.Greater(t, steps.Load(), int64(90))
}

// heardDevice is a device that tells when the steps of its models begin.
type heardDevice struct {
	backend.Device
	step func()
}

func (d heardDevice) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	return heardModel{m, d.step}, err
}

type heardModel struct {
	backend.Model
	step func()
}

func (m heardModel) Finish(s *backend.Step, done func(error)) {
	m.step()
	m.Model.Finish(s, done)
}

// TestSurviveMember: law Survive, whoever dies here.
func TestSurviveMember(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	survive(t, fixture, slices.Concat(ofModel, ofHouse), openAttic(t).beside(t, 1))
}
