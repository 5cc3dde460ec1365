package arriving

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// there is another machine that has files.
type there struct {
	files [][]byte
	fault func(n, part int, from int64) error // of the n-th read; nil: there is none

	mu    sync.Mutex
	order []spot
}

func newThere(sizes ...int) *there {
	r, x := rand.NewChaCha8([32]byte{1}), &there{}
	for _, n := range sizes {
		b := make([]byte, n)
		_, _ = r.Read(b) // it never fails
		x.files = append(x.files, b)
	}
	return x
}

func (x *there) read(ctx context.Context, part int, into []byte, from int64) error {
	time.Sleep(10 * time.Millisecond) // in a bubble
	x.mu.Lock()
	x.order = append(x.order, spot{part, int(from / piece)})
	n := len(x.order)
	x.mu.Unlock()
	if x.fault != nil {
		if err := x.fault(n, part, from); err != nil {
			return err
		}
	}
	copy(into, x.files[part][from:])
	return ctx.Err()
}

// begin has the files come to a folder.
func (x *there) begin(t *testing.T, check func() error) (*Files, []string) {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	var sizes []int64
	for i := range x.files {
		paths = append(paths, filepath.Join(dir, string(rune('a'+i))))
		sizes = append(sizes, int64(len(x.files[i])))
	}
	f, err := Begin(t.Context(), paths, sizes, x.read, check)
	require.NoError(t, err)
	return f, paths
}

func fine() error { return nil }

// TestArrives: whoever reads gets the bytes that are there, whatever comes in which order, and in the end so do the
// files. Single reads that fail are repeated.
func TestArrives(t *testing.T) {
	for name, fault := range map[string]func(n, part int, from int64) error{
		"well": nil,
		"every third read fails": func(n, _ int, _ int64) error {
			if n%3 == 0 {
				return io.ErrUnexpectedEOF
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newThere(13*piece+77, 1, 2*piece)
				x.fault = fault
				checked := 0
				f, paths := x.begin(t, func() error { checked++; return nil })
				var all sync.WaitGroup
				for reader := range 8 {
					all.Go(func() {
						r := rand.New(rand.NewPCG(1, uint64(reader)))
						for range 20 {
							part := r.IntN(len(x.files))
							from := r.IntN(len(x.files[part]))
							got := make([]byte, 1+r.IntN(min(3*piece, len(x.files[part])-from)))
							n, err := f.Part(part).ReadAt(got, int64(from))
							if err != nil || n != len(got) || !bytes.Equal(got, x.files[part][from:][:n]) {
								t.Errorf("part %d, %d bytes from %d on: %v", part, len(got), from, err)
							}
						}
					})
				}
				all.Wait()
				require.NoError(t, f.Wait())
				require.Equal(t, 1, checked)
				require.True(t, f.Part(0).Here())
				require.NoError(t, errors.Join(f.Sync(), f.Close()))
				require.NoError(t, f.Err(), "it is closed, and whole")
				for i, path := range paths {
					got, err := os.ReadFile(path)
					require.NoError(t, err)
					require.True(t, bytes.Equal(x.files[i], got), path)
				}
			})
		})
	}
}

// TestWantedFirst: what somebody waits for comes before what nobody does.
func TestWantedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newThere(50 * piece)
		f, _ := x.begin(t, fine)
		require.NoError(t, f.Part(0).Await(45*piece, 2*piece))
		x.mu.Lock()
		require.Less(t, len(x.order), 3*atOnce+1)
		x.mu.Unlock()
		require.NoError(t, f.Close())
	})
}

// TestFails: what will not come fails for all who wait, with its reason, and nothing is whole.
func TestFails(t *testing.T) {
	broken := errors.New("the cable is cut")
	for name, test := range map[string]struct {
		fault func(n, part int, from int64) error
		check func() error
		stop  bool
		want  error
	}{
		"the member dies in the middle": {func(n, _ int, _ int64) error {
			if n > 3 {
				return broken
			}
			return nil
		}, fine, false, broken},
		"what came is another model": {nil, func() error { return broken }, false, broken},
		"it is closed":               {func(int, int, int64) error { return broken }, fine, true, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newThere(9 * piece)
				x.fault = test.fault
				f, _ := x.begin(t, test.check)
				var all sync.WaitGroup
				failed := make(chan error, 9)
				for i := range 9 {
					all.Go(func() {
						_, err := f.Part(0).ReadAt(make([]byte, 1), int64(i)*piece)
						failed <- err
					})
				}
				if test.stop {
					time.Sleep(time.Second)
					f.Stop()
				}
				all.Wait()
				close(failed)
				some := false
				for err := range failed {
					if err != nil {
						some = true
						require.ErrorIs(t, err, test.want)
					}
				}
				require.True(t, some)
				require.ErrorIs(t, f.Wait(), test.want)
				require.False(t, f.Part(0).Here())
				require.NoError(t, f.Close())
			})
		})
	}
}

// TestRefuses: reads outside the file, files that are there already, and sizes that no file has.
func TestRefuses(t *testing.T) {
	x := newThere(10)
	f, paths := x.begin(t, fine)
	for _, at := range [][2]int64{{-1, 2}, {0, 11}, {11, 1}, {5, -1}, {1 << 62, 1 << 62}} {
		require.ErrorIs(t, f.Part(0).Await(at[0], at[1]), io.ErrUnexpectedEOF)
	}
	require.NoError(t, f.Part(0).Await(10, 0))
	require.NoError(t, f.Wait())
	require.NoError(t, f.Close())
	_, err := Begin(t.Context(), paths, []int64{10}, x.read, fine)
	require.ErrorIs(t, err, os.ErrExist)
	_, err = Begin(t.Context(), []string{filepath.Join(t.TempDir(), "x")}, []int64{0}, x.read, fine)
	require.ErrorContains(t, err, "0 bytes of it are to come")
}
