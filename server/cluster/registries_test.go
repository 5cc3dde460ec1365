package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/server/cluster/registry"
)

// told is a registry whose list a test writes.
type told struct {
	mu    sync.Mutex
	addrs []string
	err   error
	left  bool
}

func (r *told) Meet(context.Context) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.addrs, r.err
}

func (r *told) Leave(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
	return errors.New("it has gone")
}

func (r *told) String() string { return "told://h" }

// TestRegistries: who is listed is called, for as long as it is listed, and while the registry does not answer; what no
// registry lists is told; and we are taken off it at the end.
func TestRegistries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &told{addrs: []string{"127.0.0.1:1", "h:2"}}
		o := view(t, "a", "h:1").Options
		o.Found = []registry.Registry{r}
		c, err := New(o)
		require.NoError(t, err)
		c.http.Transport = refusing{}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.Run(ctx) })
		shows := func(want ...string) {
			t.Helper()
			time.Sleep(registry.Beat + silence + beat)
			synctest.Wait()
			var got []string
			for _, m := range c.Members()[1:] {
				if m.Addr == r.String() {
					m.Addr += " " + m.Fault
				}
				got = append(got, m.Addr)
			}
			require.Equal(t, want, got)
		}
		tells := func(err error, addrs ...string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.addrs, r.err = addrs, err
		}
		shows("h:1", "h:2")
		tells(errors.New("it is away"))
		shows("h:1", "h:2", "told://h it is away")
		tells(nil, "h:3", "h")
		shows("h:1", "h:2", `told://h "h" is no address of a member: want HOST:PORT that others reach`)
		var many []string
		for i := range mostMembers + 1 {
			many = append(many, fmt.Sprint("h:", i+1))
		}
		tells(nil, many...)
		shows("h:1", "h:2", "told://h it lists 65 members: want at most 64")
		tells(nil, "h:3")
		shows("h:1", "h:3")
		tells(nil, many[:mostMembers]...)
		time.Sleep(2 * registry.Beat)
		require.Len(t, c.Members(), 1+mostMembers)
		cancel()
		running.Wait()
		require.True(t, r.left)
	})
}
