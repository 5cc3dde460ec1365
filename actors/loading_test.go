package actors

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// TestWeightsTravelOnce: a table that embedding and head share, and divisors that layers share, are read once.
func TestWeightsTravelOnce(t *testing.T) {
	for _, name := range []string{"gemma2", "llama3rope", "qwen2moe"} {
		f, err := gguf.Open(fixturePath(t, name))
		require.NoError(t, err)
		want := int64(0)
		for _, x := range f.Tensors {
			want += x.Size
		}
		require.NoError(t, f.Close())
		e := startFixture(t, name, nil)
		loaded, total := e.Loaded()
		require.Equal(t, want, total, name)
		require.Equal(t, want, loaded, name)
	}
}

// TestLoadingStages: the device is ready, reads begin, the last one ends, the last weights are where they stay, and
// then the engine serves.
func TestLoadingStages(t *testing.T) {
	before := time.Now()
	e := startFixture(t, "qwen3", nil)
	at := e.Loading()
	for i, x := range []time.Time{before, at.Laid, at.Asked, at.Read, at.Home, time.Now()} {
		require.False(t, x.IsZero(), "%d", i)
		require.False(t, x.Before(before), "%d: %v", i, x)
		before = x
	}
	devicetest.OnProcessor(t, inPlace)
	e = startFixture(t, "qwen3", func(c *Config) { c.Model.NoRepack = true })
	require.Zero(t, e.Loading(), "nothing is brought")
}

// importing is a device that is told where slabs lie, and counts what is uploaded from elsewhere.
type importing struct {
	backend.Device
	in, elsewhere atomic.Int64
}

func (d *importing) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	return &importingModel{m, d, c.Uploaded().Slabs}, err
}

type importingModel struct {
	backend.Model
	of    *importing
	slabs []byte
}

func (m *importingModel) Upload(w ir.Ref, row int, data []byte) error {
	begin, at := uintptr(unsafe.Pointer(unsafe.SliceData(m.slabs))), uintptr(unsafe.Pointer(&data[0]))
	if at-begin < uintptr(len(m.slabs)) {
		m.of.in.Add(1)
	} else {
		m.of.elsewhere.Add(1)
	}
	return m.Model.Upload(w, row, data)
}

// TestSlabsAreTold: weights come from where the device was told that they would.
func TestSlabsAreTold(t *testing.T) {
	d := &importing{}
	startFixture(t, "qwen3", func(c *Config) { d.Device, c.Device = c.Device, d })
	require.Positive(t, d.in.Load())
	require.Zero(t, d.elsewhere.Load())
}
