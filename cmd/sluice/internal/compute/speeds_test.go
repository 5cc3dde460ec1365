package compute

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/stages/place"
)

// TestSpeedsAreKept: one measurement for each machine and file system, the last one.
func TestSpeedsAreKept(t *testing.T) {
	e, path := envtest.CachingEnv(t)
	require.Empty(t, kept(e))
	require.NoError(t, Keep(e, Speeds{Machine: "a", FileSystem: "x", Disk: 1}))
	require.NoError(t, Keep(e, Speeds{Machine: "a", FileSystem: "y", Disk: 2}))
	require.NoError(t, Keep(e, Speeds{Machine: "a", FileSystem: "x", Disk: 3}))
	require.Equal(t, []Speeds{{Machine: "a", FileSystem: "y", Disk: 2}, {Machine: "a", FileSystem: "x", Disk: 3}}, kept(e))
	for i := range 2 * mostSpeeds {
		require.NoError(t, Keep(e, Speeds{Machine: fmt.Sprint(i)}))
	}
	require.Len(t, kept(e), mostSpeeds)

	require.NoError(t, Keep(e, Speeds{Machine: machineName(), FileSystem: "none", Memory: 7, Attend: 8, Gate: 9}))
	d, err := cpu.New(1, "")
	require.NoError(t, err)
	s, err := Recall(e, source.Source{}, d)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.EqualValues(t, 7, s.Memory, "it is not measured again")

	require.NoError(t, os.WriteFile(path, []byte("[{"), 0o600))
	require.Empty(t, kept(e), "what cannot be read was never there")
	require.NoError(t, Keep(e, Speeds{Machine: "b"}))
	require.Len(t, kept(e), 1)
}

// TestBusySpeedsAreMeasuredAgain: what was measured beside other programs holds as long as these run.
func TestBusySpeedsAreMeasuredAgain(t *testing.T) {
	e, _ := envtest.CachingEnv(t)
	load := func(each float64) {
		text := fmt.Sprintf("%.2f 0.10 0.10 1/200 4711\n", each*float64(runtime.NumCPU()))
		e.Root = fstest.MapFS{"proc/loadavg": {Data: []byte(text)}}
	}
	slow := Speeds{Machine: machineName(), FileSystem: "none", Memory: 7, Attend: 8, Gate: 9, Busy: true}
	require.NoError(t, Keep(e, slow))
	d, err := cpu.New(1, "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	load(0.75)
	s, err := Recall(e, source.Source{}, d)
	require.NoError(t, err)
	require.EqualValues(t, 7, s.Memory)
	load(0.25)
	s, err = Recall(e, source.Source{}, d)
	require.NoError(t, err)
	require.Greater(t, s.Memory, 1e6)
	require.False(t, s.Busy)
	require.Equal(t, []Speeds{s}, kept(e), "in place of the other")
	load(0.75)
	s, err = MeasureSpeeds(e, source.Source{}, "")
	require.NoError(t, err)
	require.True(t, s.Busy)
}

// apart is a device with memory of its own.
type apart struct{ backend.Device }

func (apart) Name() string           { return "card" }
func (apart) Traits() backend.Traits { return backend.Traits{Memory: backend.OwnMemory} }

// TestCardIsKnown: a card is measured once; what an older program found out, in another way, does not count.
func TestCardIsKnown(t *testing.T) {
	e, _ := envtest.CachingEnv(t)
	here := Speeds{Machine: machineName(), FileSystem: "none", Memory: 7, Attend: 8, Gate: 9}
	card := deviceSpeeds{Bus: 43e9, Memory: 3e12, Copy: 1e-5, Launch: 2e-6, Turn: 3e-5}
	here.Devices = map[string]deviceSpeeds{"card": card}
	require.NoError(t, Keep(e, here))
	s, err := Recall(e, source.Source{}, apart{})
	require.NoError(t, err)
	require.Equal(t, place.Speeds{Devices: []place.Speed{{Memory: 7, Attend: 8, Gate: 9},
		{Bus: 43e9, Memory: 3e12, Copy: 1e-5, Launch: 2e-6, Turn: 3e-5}}},
		s.Planned(apart{}))

	card.Copy = 0
	here.Devices = map[string]deviceSpeeds{"card": card, "other": card}
	require.NoError(t, Keep(e, here))
	s, err = Recall(e, source.Source{}, apart{})
	require.NoError(t, err)
	require.Equal(t, map[string]deviceSpeeds{"card": {}, "other": card}, s.Devices, "none of ours has no rates")
}

// metered is a card that can be measured.
type metered struct{ apart }

func (m metered) Traits() backend.Traits { return backend.Traits{Memory: backend.OwnMemory, Meter: m} }
func (metered) Rates() (backend.Rates, error) {
	return backend.Rates{Bus: 1, Memory: 2, Copy: 3, Launch: 4, Turn: 5}, nil
}
func (metered) Ceilings(bool) (read, multiply []float64, err error) { return nil, nil, nil }

// TestCardWithHostIsMeasured: whoever opened a card with a host measures the card.
func TestCardWithHostIsMeasured(t *testing.T) {
	e, _ := envtest.CachingEnv(t)
	require.NoError(t, Keep(e, Speeds{Machine: machineName(), FileSystem: "none", Memory: 7, Attend: 8, Gate: 9}))
	host, err := cpu.New(1, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	s, err := Recall(e, source.Source{}, compose.New(host, metered{}))
	require.NoError(t, err)
	require.Equal(t, map[string]deviceSpeeds{"card": {Bus: 1, Memory: 2, Copy: 3, Launch: 4, Turn: 5}}, s.Devices)
}

// TestMirrorAddsItsDisk: a copy on another file system is another disk, one beside the file is not.
func TestMirrorAddsItsDisk(t *testing.T) {
	e, _ := envtest.CachingEnv(t)
	e.Root = fstest.MapFS{}
	for folder, rate := range map[string]float64{"/a": 3, "/b": 4} {
		require.NoError(t, Keep(e, Speeds{Machine: machineName(), FileSystem: folder, Disk: rate,
			Attend: 1}))
	}
	d, err := cpu.New(1, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	for rate, copies := range map[float64][]source.Source{3: {{Path: "/a/2.gguf"}}, 7: {{Path: "/b/1.gguf"}, {Path: "/b/2.gguf"}}} {
		s, err := Recall(e, source.Source{Path: "/a/1.gguf", Copies: copies}, d)
		require.NoError(t, err)
		require.EqualValues(t, rate, s.Disk)
	}
}

// named is a card of several that can be measured, and counts how often it is.
type named struct {
	metered
	name  string
	rate  float64
	asked *int
}

func (n named) Name() string { return n.name }
func (n named) Traits() backend.Traits {
	return backend.Traits{Memory: backend.OwnMemory, Meter: n}
}
func (n named) Rates() (backend.Rates, error) {
	*n.asked++
	return backend.Rates{Bus: n.rate, Copy: 1}, nil
}

// TestLinksOfCards: each kind of card is measured once, with its link, and plans go by those of each device.
func TestLinksOfCards(t *testing.T) {
	e, _ := envtest.CachingEnv(t)
	require.NoError(t, Keep(e, Speeds{Machine: machineName(), FileSystem: "none", Memory: 7, Attend: 8, Gate: 9}))
	host, err := cpu.New(1, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	asked := 0
	d := compose.New(host, named{name: "a", rate: 1, asked: &asked}, named{name: "b", rate: 2, asked: &asked},
		named{name: "a", rate: 3, asked: &asked})
	for range 2 {
		s, err := Recall(e, source.Source{}, d)
		require.NoError(t, err)
		require.Equal(t, 2, asked)
		a, processor := place.Speed{Bus: 1, Copy: 1}, place.Speed{Memory: 7, Attend: 8, Gate: 9}
		require.Equal(t, []place.Speed{processor, a, {Bus: 2, Copy: 1}, a}, s.Planned(d).Devices)
	}
}
