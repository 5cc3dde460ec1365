package actors

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/uring"
)

// pair counts what two drives are asked for. One of them may fail.
type pair struct {
	drive
	mu    sync.Mutex
	reads map[string]int // by folder
	ill   string         // the folder whose reads fare like the drive's weather
}

func (p *pair) open(depth int, memory []byte) (tiers.Disk, error) {
	ring, err := tiers.OpenRing(depth, memory)
	return &pairRing{badRing{ring, &p.drive}, p, map[uint64]string{}}, err
}

func (p *pair) asked(folder string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads[folder]
}

type pairRing struct {
	badRing
	pair *pair
	from map[uint64]string // the folder of each read under way
}

func (r *pairRing) Submit(all []uring.Request) error {
	r.pair.mu.Lock()
	defer r.pair.mu.Unlock()
	for i := range all {
		folder := filepath.Dir(all[i].Source.Path)
		r.from[all[i].ID] = folder
		r.pair.reads[folder]++
	}
	return r.Disk.Submit(all)
}

func (r *pairRing) Wait(least int, done []uring.Completion) (int, error) {
	if least == 0 {
		return 0, nil // reads stay under way, as on a drive
	}
	n, err := r.Disk.Wait(least, done)
	for i := range done[:n] {
		if r.from[done[i].ID] == r.pair.ill {
			r.spoil(&done[i])
		}
	}
	return n, err
}

// TestMirrorServes: weights come from both copies, and when one fails or lies, the other one serves all.
func TestMirrorServes(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	data, err := os.ReadFile(fixturePath(t, fixture))
	require.NoError(t, err)
	here, there := t.TempDir(), t.TempDir()
	for _, folder := range []string{here, there} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "m.gguf"), data, 0o600))
	}
	all := prompts(2)
	want := alone(t, startFixture(t, fixture, nil), all, 16)
	for name, test := range map[string]struct {
		ill string
		by  weather
	}{
		"both well": {}, "the file fails": {here, erring}, "the copy fails": {there, erring}, "the copy lies": {there, lying},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			f, err := gguf.Open(filepath.Join(here, "m.gguf"))
			require.NoError(t, err)
			require.NoError(t, f.Mirror(there))
			d := &pair{drive: drive{r: rand.New(rand.NewPCG(1, 2)), one: 1}, reads: map[string]int{}, ill: test.ill}
			e := startFile(t, f, func(c *Config) { c.hooks.plan, c.hooks.disk = few{Ring: 2}.Plan, d.open })
			require.Equal(t, want, alone(t, e, all, 16))
			require.Positive(t, min(d.asked(here), d.asked(there)))
			before := d.asked(test.ill)
			d.turn(test.by, 1)
			require.Equal(t, want, alone(t, e, all, 16))
			require.NoError(t, e.Health())
			if test.by != well {
				require.LessOrEqual(t, d.asked(test.ill)-before, readsUnderWay, "it rests")
			}
		})
	}
}

// readsUnderWay bounds what a drive can have been asked for when its first failure is known.
const readsUnderWay = 64
