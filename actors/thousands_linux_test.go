package actors

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/kvfiles"
)

// sessionsAsked in the environment is how many sessions TestSessionsByTheThousand has: 10000 take 20 GB of disk, and
// seven minutes of two quiet cores.
const sessionsAsked = "SLUICE_SESSIONS"

// sessionAnswer is how many tokens answers have.
const sessionAnswer = 6

// What a session may take of the cache and of the folder: of 10,000, 1 GB and 20 GB.
const (
	cacheOfSession  = 100 << 10
	folderOfSession = 2000 << 10
)

// backWithin is how soon a session has to be answered that comes back, on a machine that has nothing else to do. It
// is told, and fails nothing.
const backWithin = 500 * time.Millisecond

// conversations are texts of two blocks and a part of a third, of which none begins as another does. Blocks are of
// floats, twice as large as usual, so that sessions are large in files and soon computed.
type conversations struct {
	count int
	want  [][sha256.Size]byte // what each was answered first
}

func (c *conversations) prompt(i int) []int32 {
	r := rand.New(rand.NewPCG(uint64(i), 33))
	p := make([]int32, 2*backend.BlockSize+1+r.IntN(24))
	for j := range p {
		p[j] = int32(1 + r.IntN(2000))
	}
	return p
}

// engine is the embedded model, with room for hardly one session in twenty.
func (c *conversations) engine(t *testing.T, path string) *Engine {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	folder, err := kvfiles.Open(path, int64(c.count)*folderOfSession, time.Now())
	require.NoError(t, err)
	m := Model{File: f, KV: backend.KVF32, Context: 512, Sequences: 4, Blocks: 8,
		Kept: Kept{Folder: folder, Weights: "embedded"}}
	plan, err := PlanFor(&m, devicetest.Processor(t, ""))
	require.NoError(t, err)
	m.Blocks = int(int64(c.count) * cacheOfSession / (plan.Model.Host().KV / 8))
	return startFile(t, f, func(c *Config) {
		c.Model, c.Log = m, zerolog.Nop()
		require.NoError(t, c.Device.Close())
		c.Device = devicetest.Processor(t, "")
	})
}

// resident is what a process takes of memory that is in no file, in bytes.
func resident(t *testing.T) (bytes int64) {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for _, name := range []string{"RssAnon:", "RssShmem:"} {
		_, after, found := strings.Cut(string(status), name)
		require.True(t, found)
		kib, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
		require.NoError(t, err)
		bytes += kib << 10
	}
	return bytes
}

// first has all sessions answered for the first time, some at a time.
func (c *conversations) first(t *testing.T, e *Engine) {
	var readers sync.WaitGroup
	for at := range 4 {
		readers.Go(func() {
			for i := at; i < c.count; i += 4 {
				s, err := trySpelled(begin(t, e, ask(c.prompt(i), sessionAnswer)))
				if err != nil {
					t.Errorf("session %d: %v", i, err)
					return
				}
				c.want[i] = sha256.Sum256([]byte(s))
			}
		})
	}
	readers.Wait()
	e.house.settle(e.tenant)
}

// back has sessions come back one after the other, in an order of their own, and returns how long each took, sorted.
func (c *conversations) back(t *testing.T, e *Engine, every int, look func()) (all []time.Duration) {
	for n, i := range rand.New(rand.NewPCG(uint64(every), 7)).Perm(c.count) {
		if n%every > 0 {
			continue
		}
		p, from := c.prompt(i), time.Now()
		s := begin(t, e, ask(p, sessionAnswer))
		got := spelled(t, s)
		all = append(all, time.Since(from))
		require.Equal(t, c.want[i], sha256.Sum256([]byte(got)), "session %d", i)
		require.Equal(t, whole(p), s.Usage().Cached, "session %d is found wholly", i)
		look()
	}
	slices.Sort(all)
	return all
}

func howSoon(all []time.Duration) string {
	at := func(share float64) time.Duration {
		return all[int(share*float64(len(all)-1))].Round(100 * time.Microsecond)
	}
	late, _ := slices.BinarySearch(all, backWithin+1)
	return fmt.Sprintf("%d sessions back after %v in the median, %v at the 99th percentile, %v at most; %d after more "+
		"than %v", len(all), at(0.5), at(0.99), at(1), len(all)-late, backWithin)
}

// Many sessions go through a cache that has hardly one in twenty of them and a folder that has all: each is found again
// wholly, in the same process and after a restart, with the answer that it had first, and memory keeps to the plan.
func TestSessionsByTheThousand(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred sessions are answered three times")
	}
	c := &conversations{count: 100}
	if text := os.Getenv(sessionsAsked); text != "" {
		var err error
		c.count, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	c.want = make([][sha256.Size]byte, c.count)
	path := t.TempDir()
	debug.FreeOSMemory()
	before, most, phase := resident(t), int64(0), int64(0)
	e := c.engine(t, path)
	plan := e.spec.plan.Host().Bytes()
	look := func() { phase = max(phase, resident(t)-before) }
	tell := func(what string) {
		t.Logf("%s; memory: %.1f MB at most", what, float64(phase)/1e6)
		most, phase = max(most, phase), 0
	}
	from := time.Now()
	c.first(t, e)
	look()
	tell(fmt.Sprintf("%d sessions answered after %v, a cache of %d blocks, a folder of %.2f GB", c.count,
		time.Since(from).Round(time.Second), e.Snapshot().KV.Blocks, float64(e.spec.kept.Folder.Used())/1e9))
	tell("in the same process: " + howSoon(c.back(t, e, 1, look)))
	require.Zero(t, e.Snapshot().KV.Evictions, "the folder has room for all")
	require.Positive(t, e.Snapshot().KV.Read)
	shut(t, e)

	from = time.Now()
	e = c.engine(t, path)
	look()
	tell(fmt.Sprintf("started again after %v", time.Since(from).Round(time.Millisecond)))
	tell("after a restart: " + howSoon(c.back(t, e, 10, look)))
	debug.FreeOSMemory()
	t.Logf("memory: %.1f MB at most, %.1f at the end, %.1f by the plan, of the program's own heap %.1f; %+.2f %% of both at "+
		"most", float64(most)/1e6, float64(resident(t)-before)/1e6, float64(plan)/1e6, float64(heapOfSessions)/1e6,
		100*(float64(most)/float64(plan+heapOfSessions)-1))
	require.Less(t, most, plan+plan/50+heapOfSessions)
}

// heapOfSessions is what the program takes beside the plan, whatever the number of sessions.
const heapOfSessions = 64 << 20
