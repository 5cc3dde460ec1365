package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/uring"
)

// weather is how a drive is for a while.
type weather int

const (
	well     weather = iota
	erring           // reads fail
	lying            // they give other bytes, and say nothing
	stalling         // they take their time
	ending           // they find the file shorter
	hanging          // none of them ends
	gone             // there is no drive: rings cannot be opened, and open ones break
	weathers
)

// drive is one that fails in every way that drives fail.
type drive struct {
	mu   sync.Mutex
	r    *rand.Rand
	now  weather
	one  int           // of so many reads fares like that
	seen [weathers]int // reads that did
}

func (d *drive) turn(w weather, one int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now, d.one = w, one
}

// roll says whether a read fares so.
func (d *drive) roll(w weather) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now != w || d.r.IntN(d.one) != 0 {
		return false
	}
	d.seen[w]++
	return true
}

// fared is how many reads did so, by weather. Some may go on.
func (d *drive) fared() [weathers]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen
}

func (d *drive) open(depth int, memory []byte) (tiers.Disk, error) {
	if d.roll(gone) {
		return nil, syscall.ENODEV
	}
	ring, err := tiers.OpenRing(depth, memory)
	return &badRing{Disk: ring, drive: d}, err
}

// change goes through all weathers, worse and better, again and again until ctx ends, and leaves the drive well.
func (d *drive) change(ctx context.Context) {
	for ctx.Err() == nil {
		for _, w := range rand.Perm(int(weathers)) {
			d.turn(weather(w), 1+rand.IntN(4))
			time.Sleep(badSpell)
			d.turn(well, 1)
			time.Sleep(badSpell / 8)
		}
	}
}

// badSpell is longer than a read is tried again.
const badSpell = 300 * time.Millisecond

// Whatever is wrong with a drive, a request ends with an error that says so, and the next one is answered when it is
// well again.
func TestDrivesFailClearly(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(2)
	want := alone(t, startFixture(t, fixture, nil), all, 16)
	d := &drive{r: rand.New(rand.NewPCG(1, 2)), one: 1}
	e := startFixture(t, fixture, func(c *Config) { c.hooks.plan, c.hooks.disk = few{Ring: 2}.Plan, d.open })
	require.Equal(t, want, alone(t, e, all, 16))
	for w, cause := range map[weather]string{erring: "input/output error", gone: "no such device", ending: "unexpected EOF",
		lying: "they are not those that were read before: the drive fails, or the file was written to"} {
		d.turn(w, 1)
		_, err := drain(begin(t, e, ask(all[1], 16)))
		require.ErrorContains(t, err, cause)
		require.Regexp(t, clearly, err.Error())
		d.turn(well, 1)
		require.NoError(t, e.Health())
		require.Equal(t, want, alone(t, e, all, 16), cause)
	}
	d.turn(erring, 1) // while the device comes back, longer than a read is tried again
	e.crash("device")
	time.AfterFunc(2*badSpell, func() { d.turn(well, 1) })
	require.Equal(t, want, alone(t, e, all, 16))
	require.NoError(t, e.Health())
	d.turn(lying, 10) // now and then
	require.Equal(t, want, alone(t, e, all, 16))
	require.Greater(t, d.fared()[lying], 5)
}

type badRing struct {
	tiers.Disk
	drive *drive
}

func (b *badRing) Submit(all []uring.Request) error {
	if b.drive.roll(gone) {
		return syscall.ENODEV
	}
	return b.Disk.Submit(all)
}

func (b *badRing) Wait(least int, done []uring.Completion) (int, error) {
	if b.drive.roll(gone) {
		return 0, syscall.ENODEV
	}
	n, err := b.Disk.Wait(least, done)
	for n > 0 && b.drive.roll(hanging) {
		time.Sleep(5 * time.Millisecond)
	}
	for i := range done[:n] {
		b.spoil(&done[i])
	}
	return n, err
}

func (b *badRing) spoil(c *uring.Completion) {
	fail := func(err error) {
		for i := range c.Data {
			c.Data[i] ^= 0xff // what a failed read leaves is anything
		}
		c.Data, c.Err = nil, fmt.Errorf("m.gguf: %w", err)
	}
	switch d := b.drive; {
	case c.Err != nil:
	case d.roll(erring):
		fail(syscall.EIO)
	case d.roll(ending):
		fail(io.ErrUnexpectedEOF)
	case d.roll(lying):
		for i := range c.Data {
			c.Data[i] ^= 0x55
		}
	case d.roll(stalling):
		time.Sleep(rand.N(20 * time.Millisecond))
	}
}

// A file that somebody writes to, cuts or replaces while it is read makes the model unhealthy, asked or not, and no
// answer of other bytes. Restored, it is what it was.
func TestFileChanges(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	data, err := os.ReadFile(fixturePath(t, fixture))
	require.NoError(t, err)
	all := prompts(2)
	want := alone(t, startFixture(t, fixture, nil), all, 16)
	ways := map[string]func(*Config){
		"streamed": streamed(few{Ring: 2}), "in place": func(c *Config) { c.NoRepack = true },
	}
	if devicetest.OnGPU() {
		delete(ways, "in place")
	}
	for how, edit := range ways {
		path := filepath.Join(t.TempDir(), "m.gguf")
		old := time.Now().Add(-time.Hour) // not within the grain of the file system's clock
		restore := func() {
			require.NoError(t, os.WriteFile(path, data, 0o600))
			require.NoError(t, os.Chtimes(path, old, old))
		}
		restore()
		f, err := gguf.Open(path)
		require.NoError(t, err)
		e := startFile(t, f, edit)
		require.Equal(t, want, alone(t, e, all, 16), how)
		for what, change := range map[string]func() error{
			"was written to after it was opened": func() error {
				w, err := os.OpenFile(path, os.O_WRONLY, 0)
				if err == nil {
					_, err = w.WriteAt(make([]byte, 1000), int64(len(data))-5000)
					err = errors.Join(err, w.Close())
				}
				return err
			},
			"was truncated or cannot be read any more": func() error { return os.Truncate(path, int64(len(data))-100) },
		} {
			s := begin(t, e, ask(all[0], 100_000))
			next(t, s, 2)
			require.NoError(t, change())
			require.ErrorContains(t, e.Health(), "m.gguf: the file "+what)
			_, err := e.Generate(ask(all[0], 16))
			require.ErrorContains(t, err, what)
			if how == "streamed" {
				_, err = drain(s)
				require.ErrorContains(t, err, `m.gguf: tensor "`)
				require.ErrorContains(t, err, "restore it and start again")
			}
			s.Close()
			left(t, e)
			restore()
			require.Equal(t, want, alone(t, e, all, 16), what)
		}
	}
}

// Law Survive on a drive that hangs: nobody waits for ever, and after the first nobody waits for what does not come.
// When it answers again, what comes late is used.
func TestDriveIsLate(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(2)
	for name, few := range map[string]few{fixture: {Ring: 2}, "qwen3moe": {Shelf: 1}} {
		want := alone(t, startFixture(t, name, nil), all, 16)
		late := 400 * time.Millisecond
		for !tellsLate(t, name, few, late, all, want) {
			late *= 2
			require.Less(t, late, 10*time.Second, "who comes after the first waits as long, or a good drive is late")
		}
	}
}

// tellsLate says whether a drive that is late by so much, and no other one, is told of, and at once where it is known.
// It is false of a machine that is so busy that it takes as long for anything else.
func tellsLate(t *testing.T, name string, few few, late time.Duration, all [][]int32, want []string) bool {
	d := &drive{r: rand.New(rand.NewPCG(1, 2)), one: 1}
	e := startFixture(t, name, func(c *Config) {
		c.hooks.plan, c.hooks.disk, c.hooks.late = few.Plan, d.open, late
	})
	answers := func() bool {
		for i, p := range all {
			got, err := trySpelled(begin(t, e, ask(p, 16)))
			if err != nil {
				require.ErrorContains(t, err, "has given nothing of it for")
				return false
			}
			require.Equal(t, want[i], got)
		}
		return true
	}
	if !answers() {
		return false
	}
	for range 2 {
		d.turn(hanging, 1)
		began := now()
		_, err := drain(begin(t, e, ask(all[1], 16)))
		require.ErrorContains(t, err, fmt.Sprintf("the drive has given nothing of it for %v: check it", late))
		require.Regexp(t, clearly, err.Error())
		require.GreaterOrEqual(t, now().Sub(began), late)
		began = now()
		_, err = drain(begin(t, e, ask(all[0], 16)))
		took := now().Sub(began)
		require.Regexp(t, clearly, err.Error())
		d.turn(well, 1)
		require.NoError(t, e.Health())
		if took >= late || !answers() {
			return false
		}
	}
	return true
}

// clearly is how a request ends that a drive has failed: what could not be read, of which file, and why.
var clearly = regexp.MustCompile(`this request cannot be computed: .*\.gguf: tensor ".*": .*(input/output error|` +
	`no such device|unexpected EOF|has given nothing of it for|not those that were read before)`)

// Law Survive on drives that fail, lie, stall and vanish, while whatever brings weights dies at random under load:
// every answer is right as far as it was read, or ends with an error that names the tensor and the cause; when the
// drive is well again, so is everything.
func TestSurviveDrives(t *testing.T) {
	for _, c := range []struct {
		name string
		few
	}{
		{fixture, few{Ring: 2}}, {"qwen3moe", few{Ring: 3, Shelf: 2, Piece: 16 << 10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Cleanup(func() { goleak.VerifyNone(t) })
			defer deadline(chaosTime() + 10*time.Minute).Stop()
			x := &chaos{seed: chaosSeed(), prompts: prompts(8), t: t, clearly: clearly}
			x.learn(t, c.name)
			d := &drive{r: rand.New(rand.NewPCG(x.seed, 100)), one: 1}
			x.Engine = startFixture(t, c.name, func(cfg *Config) {
				cfg.Context, cfg.Blocks, cfg.Sequences, cfg.Rows = 256, 9, 4, 64
				cfg.hooks.plan, cfg.hooks.disk, cfg.hooks.late = c.few.Plan, d.open, badSpell*2/3
			})
			x.answersAll(t) // all is read once
			ctx, end := context.WithTimeout(t.Context(), chaosTime())
			defer end()
			var changing sync.WaitGroup
			changing.Go(func() { d.change(ctx) })
			x.rage(t, slices.Concat(ofModel, ofHouse))
			changing.Wait()
			x.idle(t)
			x.answersAll(t)
			t.Logf("%d answers, %d clear errors; reads by weather %v", x.answers.Load(), x.failures.Load(), d.fared())
			require.Positive(t, x.answers.Load())
		})
	}
}

// answersAll waits until every prompt has its answer. The first may still be told at once of what did not come before,
// and of a drive that is well a busy machine may read too late; none is told anything else, nor answered wrongly.
func (x *chaos) answersAll(t *testing.T) {
	for i := range x.prompts {
		require.Eventually(t, func() bool {
			got, err := trySpelled(begin(t, x.Engine, x.request(i)))
			x.check(err)
			if err == nil && got != x.want[i] {
				t.Errorf("prompt %d: got\n%s\nwant\n%s", i, got, x.want[i])
			}
			return err == nil
		}, patient, time.Millisecond)
	}
}

// deadline ends a test that hangs, with what all goroutines do.
func deadline(after time.Duration) *time.Timer {
	return time.AfterFunc(after, func() {
		pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		panic("the test hangs")
	})
}
