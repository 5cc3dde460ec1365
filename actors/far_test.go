package actors

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/storage/arriving"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// away is a file on another machine.
type away struct {
	data  []byte
	reads atomic.Int64
	ill   atomic.Bool // reads fail
	lies  atomic.Bool // or are not what is there
}

func (a *away) Here() bool { return false }

var errAway = errors.New("the cable is cut")

func (a *away) ReadAt(b []byte, from int64) (int, error) {
	a.reads.Add(1)
	if a.ill.Load() {
		return 0, errAway
	}
	n := copy(b, a.data[from:])
	if a.lies.Load() {
		for i := range b {
			b[i] ^= 0x40
		}
	}
	return n, nil
}

func (a *away) fetch(_ context.Context, _ int, into []byte, from int64) error {
	_, err := a.ReadAt(into, from)
	return err
}

// TestArrivingModel: a model whose file comes from another machine while it is loaded answers as one that is here,
// whether its weights stay in memory, are streamed, or are computed from the file.
func TestArrivingModel(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	data, err := os.ReadFile(fixturePath(t, fixture))
	require.NoError(t, err)
	all := prompts(2)
	want := alone(t, startFixture(t, fixture, nil), all, 16)
	for name, edit := range map[string]func(*Config){
		"in memory": nil,
		"streamed":  func(c *Config) { c.hooks.plan = few{Ring: 2}.Plan },
		"in place":  func(c *Config) { c.NoRepack = true },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.gguf")
			a := &away{data: data}
			files, err := arriving.Begin(t.Context(), []string{path}, []int64{int64(len(data))}, a.fetch,
				func() error { return nil })
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, files.Close()) })
			here, err := gguf.Parse("m", data)
			require.NoError(t, err)
			_, heads := here.Shared()
			require.NoError(t, files.Part(0).Await(0, heads[0]))
			f, err := gguf.OpenArriving(path, "its content", []source.Arriving{files.Part(0)})
			require.NoError(t, err)
			e := startFile(t, f, edit)
			require.Equal(t, want, alone(t, e, all, 16))
			require.NoError(t, files.Wait())
			require.Equal(t, want, alone(t, e, all, 16))
			require.NoError(t, e.Health())
		})
	}
}

// TestArrivingFails: a model that does not come as a whole is not loaded, and the error says why.
func TestArrivingFails(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	data, err := os.ReadFile(fixturePath(t, fixture))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "m.gguf")
	another := errors.New("what came is another model")
	a := &away{data: data}
	files, err := arriving.Begin(t.Context(), []string{path}, []int64{int64(len(data))}, a.fetch,
		func() error { return another })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	require.ErrorIs(t, files.Wait(), another)
	f, err := gguf.OpenArriving(path, "its content", []source.Arriving{files.Part(0)})
	require.NoError(t, err)
	_, err = Start(t.Context(), Config{Model: Model{File: f}, Device: newDevice(t)})
	require.ErrorIs(t, err, another)
}

// TestMirrorAfar: weights come from a drive and from another machine. Whatever is wrong there, the drive serves all.
func TestMirrorAfar(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	data, err := os.ReadFile(fixturePath(t, fixture))
	require.NoError(t, err)
	all := prompts(2)
	want := alone(t, startFixture(t, fixture, nil), all, 16)
	f, err := gguf.Open(fixturePath(t, fixture))
	require.NoError(t, err)
	a := &away{data: data}
	require.ErrorContains(t, f.MirrorAt([]source.Source{{Size: 5}}), "part 1 of the copy has 5 bytes")
	afar := source.Source{Name: "afar", Path: "a/m", Size: int64(len(data)), Remote: a}
	require.NoError(t, f.MirrorAt([]source.Source{afar}))
	e := startFile(t, f, func(c *Config) { c.hooks.plan = few{Ring: 2}.Plan })
	require.Equal(t, want, alone(t, e, all, 16))
	require.Positive(t, a.reads.Load())
	for name, ill := range map[string]*atomic.Bool{"fails": &a.ill, "lies": &a.lies} {
		ill.Store(true)
		require.Equal(t, want, alone(t, e, all, 16), name)
		require.NoError(t, e.Health())
		ill.Store(false)
	}
}
