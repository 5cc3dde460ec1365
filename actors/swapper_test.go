package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/swap"
)

// toy is a model that does nothing but be there.
type toy struct {
	name   string
	needs  int64
	of     *toys
	dead   error
	closed bool
	users  int
}

func (y *toy) Health() error {
	y.of.mu.Lock()
	defer y.of.mu.Unlock()
	return y.dead
}

func (y *toy) Leave(context.Context) error {
	time.Sleep(100 * time.Millisecond)
	y.of.mu.Lock()
	defer y.of.mu.Unlock()
	if y.users > 0 {
		y.of.faults = append(y.of.faults, y.name+" was closed while it was used")
	}
	y.closed = true
	y.of.taken -= y.needs
	return nil
}

// toys are models that take a second for each unit of memory to load. One whose name begins with "bad" cannot be.
type toys struct {
	names []string
	room  int64

	mu          sync.Mutex
	taken, most int64
	loads       map[string]int
	faults      []string
}

func (s *toys) Names() []string { return s.names }

func (s *toys) Measure(_ context.Context, name string) (swap.Room, error) {
	if name == "bad file" {
		return swap.Room{}, errors.New("this is no model")
	}
	return swap.Room{Host: int64(len(name))}, nil
}

func (s *toys) Load(ctx context.Context, name string, room swap.Room, progress func(done, total int64)) (*toy, error) {
	needs := int64(len(name))
	s.mu.Lock()
	s.taken += needs
	s.most = max(s.most, s.taken)
	if s.loads == nil {
		s.loads = map[string]int{}
	}
	s.loads[name]++
	if s.taken > s.room || room.Host != needs {
		s.faults = append(s.faults, fmt.Sprintf("%s is loaded into %d where %d of %d are taken", name, room.Host, s.taken, s.room))
	}
	s.mu.Unlock()
	var err error
	for i := range needs {
		progress(i, needs)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	switch name {
	case "bad load":
		err = errors.New("it broke")
	case "bad code":
		err = errors.New("after a panic")
	}
	if err != nil {
		s.mu.Lock()
		s.taken -= needs
		s.mu.Unlock()
		if name == "bad code" {
			panic("index out of range")
		}
		return nil, err
	}
	return &toy{name: name, needs: needs, of: s}, nil
}

func newToys(s *toys, keep time.Duration, queue int) *swapper[*toy] {
	return newSwapper(s, swap.Limits{Room: swap.Room{Host: s.room}, KeepAlive: keep, Queue: queue}, zerolog.Nop())
}

// shutToys closes a swapper, after which nothing is taken.
func shutToys(t *testing.T, f *swapper[*toy], s *toys) {
	require.NoError(t, f.Close(context.Background()))
	require.Empty(t, s.faults)
	require.Zero(t, s.taken)
	_, _, err := f.Use(t.Context(), s.names[0])
	require.ErrorIs(t, err, ErrClosed)
}

// use asks for a model and uses it for a while.
func useToy(ctx context.Context, f *swapper[*toy], name string, d time.Duration) error {
	e, done, err := f.Use(ctx, name)
	if err != nil {
		return err
	}
	defer done()
	defer done() // once is enough
	count := func(n int) {
		e.of.mu.Lock()
		defer e.of.mu.Unlock()
		e.users += n
		if e.closed || e.name != name {
			e.of.faults = append(e.of.faults, "got "+e.name+" for "+name)
		}
	}
	count(1)
	time.Sleep(d)
	count(-1)
	return nil
}

// Three models of which two fit, under load: no request is lost, none waits for ever, memory is kept, and none that is
// used leaves.
func TestSwapsUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &toys{names: []string{"aaaa", "bbbb", "cccc"}, room: 10}
		f := newToys(s, 0, 1000)
		var all sync.WaitGroup
		for i := range 50 {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			all.Go(func() {
				for range 20 {
					asked := time.Now()
					if err := useToy(t.Context(), f, s.names[r.IntN(3)], time.Duration(r.IntN(3000))*time.Millisecond); err != nil {
						t.Error(err)
					}
					if waited := time.Since(asked); waited > time.Minute {
						t.Errorf("a request took %v", waited)
					}
					time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
				}
			})
		}
		all.Wait()
		require.Greater(t, s.loads["aaaa"]+s.loads["bbbb"]+s.loads["cccc"], 6, "they were swapped")
		require.Equal(t, int64(8), s.most)
		shutToys(t, f, s)
	})
}

// What fails is told to those who asked for it; the others go on.
func TestFailuresAreTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &toys{names: []string{"good", "bad file", "bad load", "bad code"}, room: 12}
		f := newToys(s, 0, 1000)
		var all sync.WaitGroup
		for _, name := range s.names {
			for range 5 {
				all.Go(func() {
					err := useToy(t.Context(), f, name, time.Second)
					if good := err == nil; good != (name == "good") {
						t.Errorf("%s: %v", name, err)
					}
					if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("the model %q cannot be loaded: ", name)) {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		require.Equal(t, map[string]int{"good": 1, "bad load": 1, "bad code": 1}, s.loads)
		_, _, err := f.Use(t.Context(), "../../etc/passwd")
		require.ErrorIs(t, err, ErrUnknown)
		require.NoError(t, f.Status("good").Fault)
		require.ErrorContains(t, f.Status("bad file").Fault, "this is no model")
		require.ErrorContains(t, f.Status("bad load").Fault, "it broke")
		f.Changed("bad file")
		require.NoError(t, f.Status("bad file").Fault, "it is another file now")
		s.names[2] = "mended" // as a file of the same name would be
		f.faults["mended"] = f.faults["bad load"]
		require.NoError(t, useToy(t.Context(), f, "mended", time.Second))
		require.NoError(t, f.Status("mended").Fault)
		shutToys(t, f, s)
	})
}

// A model leaves when nobody has asked for it in a long time, and one that died when somebody does.
func TestLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &toys{names: []string{"a", "b"}, room: 4}
		f := newToys(s, time.Minute, 10)
		require.NoError(t, useToy(t.Context(), f, "a", 2*time.Minute))
		first := f.Engine("a")
		require.Equal(t, ModelStatus{Phase: swap.Ready}, f.Status("a"))
		first.dead = errors.New("it died")
		require.NoError(t, useToy(t.Context(), f, "a", 0))
		require.NotSame(t, first, f.Engine("a"))
		require.True(t, first.closed)
		time.Sleep(59 * time.Second)
		synctest.Wait()
		require.Equal(t, swap.Ready, f.Status("a").Phase)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, swap.Absent, f.Status("a").Phase)
		require.Nil(t, f.Engine("a"))
		shutToys(t, f, s)
	})
}

// Who waits can be told how far it is, goes when it likes, and is not many.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &toys{names: []string{"aaaa"}, room: 4}
		f := newToys(s, 0, 2)
		gone, leave := context.WithCancelCause(t.Context())
		errs := make(chan error, 2)
		for _, ctx := range []context.Context{gone, t.Context()} {
			go func() { errs <- useToy(ctx, f, "aaaa", 0) }()
			synctest.Wait()
		}
		require.ErrorIs(t, useToy(t.Context(), f, "aaaa", 0), ErrFull)
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, ModelStatus{Phase: swap.Loading, Waiting: 2, Done: 2, Total: 4}, f.Status("aaaa"))
		left := errors.New("it has gone")
		leave(left)
		require.ErrorIs(t, <-errs, left)
		require.Equal(t, 1, f.Status("aaaa").Waiting)
		require.NoError(t, <-errs)
		require.Equal(t, 4*time.Second, time.Since(epoch()))
		shutToys(t, f, s)
	})
}

// epoch is when virtual time begins.
func epoch() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// What is warmed makes nobody leave.
func TestWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &toys{names: []string{"aaa", "bbb", "bad file"}, room: 5}
		f := newToys(s, 0, 10)
		require.NoError(t, f.Warm(t.Context(), "aaa"))
		require.NoError(t, f.Warm(t.Context(), "bbb"))
		require.Equal(t, swap.Ready, f.Status("aaa").Phase)
		require.Equal(t, swap.Absent, f.Status("bbb").Phase)
		require.ErrorContains(t, f.Warm(t.Context(), "bad file"), "this is no model")
		shutToys(t, f, s)
	})
}

// Close gives up what is being loaded, and tells those who wait.
func TestCloseWhileLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &toys{names: []string{"aaaaaaaaaa"}, room: 10}
		f := newToys(s, 0, 10)
		errs := make(chan error, 1)
		go func() { errs <- useToy(t.Context(), f, "aaaaaaaaaa", 0) }()
		time.Sleep(1500 * time.Millisecond)
		shutToys(t, f, s)
		require.ErrorIs(t, <-errs, ErrClosed)
	})
}
