package actors

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/model/lora"
)

// randomAdapter is one whose opening is counted.
func randomAdapter(name string, seed uint64, loads *atomic.Int32) Adapter {
	return Adapter{Name: name, Open: func(p *ir.Program) (*lora.Loaded, error) {
		loads.Add(1)
		a := backendtest.RandomAdapter(rand.New(rand.NewPCG(seed, 1)), p, 4, 1)
		return &lora.Loaded{Adapter: *a, Bytes: 1 << 20, Digest: [32]byte{byte(seed)}}, nil
	}}
}

func adapted(t *testing.T, edit func(*Config)) (*Engine, *atomic.Int32) {
	t.Helper()
	e := startFixture(t, fixture, func(c *Config) {
		c.Adapted = true
		if edit != nil {
			edit(c)
		}
	})
	loads := new(atomic.Int32)
	for i := range 4 {
		require.NoError(t, e.AddAdapter(randomAdapter(strconv.Itoa(i), uint64(i+1), loads), false))
	}
	return e, loads
}

// wearing is request i of a crowd: with none, one, another one, or several adapters.
func wearing(i int, prompt []int32) Request {
	r := ask(prompt, 16)
	r.Adapters = [][]Adapting{{}, {{"0", 1}}, {{"1", 0.5}}, {{"2", 1}, {"0", -1}}, {{"0", 2}}}[i%5]
	return r
}

// TestRowAloneAdapters is the law RowAlone with adapters: the answers of requests with different adapters, to equal
// prompts, are those that each has alone, whatever the prefix cache holds; and without any, those of a model that takes
// none.
func TestRowAloneAdapters(t *testing.T) {
	var prompt []int32
	for _, p := range prompts(12) {
		prompt = append(prompt, p...)
	}
	prompt = prompt[:min(len(prompt), backend.BlockSize+20)] // the prefix cache has a block of it
	require.Greater(t, len(prompt), backend.BlockSize)
	want := make([]string, 10)
	for i := range want {
		e, _ := adapted(t, nil)
		want[i] = spelled(t, begin(t, e, wearing(i, prompt)))
	}
	require.Equal(t, want[0], alone(t, startFixture(t, fixture, nil), [][]int32{prompt}, 16)[0])
	for i := 1; i < 5; i++ {
		require.NotContains(t, want[:i], want[i], "adapters that change nothing test nothing")
	}
	e, loads := adapted(t, nil)
	for range 2 { // the second time with all prompts in the prefix cache
		streams := make([]*Stream, len(want))
		for i := range streams {
			streams[i] = begin(t, e, wearing(i, prompt))
		}
		for i, s := range streams {
			require.Equal(t, want[i], spelled(t, s), "request %d", i)
		}
	}
	require.EqualValues(t, 3, loads.Load(), "each is loaded once")
	swapped := ask(prompt, 16)
	swapped.Adapters = []Adapting{{"0", -1}, {"2", 1}}
	require.Equal(t, want[3], spelled(t, begin(t, e, swapped)), "the order in which they are named")
}

// TestAdapterBudget: the adapter that was not used for longest leaves, none that is in use, and one more is refused.
func TestAdapterBudget(t *testing.T) {
	e, loads := adapted(t, func(c *Config) { c.Adapters = 2 << 20 })
	prompt := prompts(1)[0]
	use := func(name string) string {
		r := ask(prompt, 4)
		r.Adapters = []Adapting{{name, 1}}
		return spelled(t, begin(t, e, r))
	}
	first := use("0")
	use("1")
	use("0")
	use("2") // for which 1 leaves
	require.Equal(t, first, use("0"))
	require.EqualValues(t, 3, loads.Load())
	use("1")
	require.EqualValues(t, 4, loads.Load())

	r := ask(prompt, 4)
	r.Adapters = []Adapting{{"0", 1}, {"1", 1}, {"2", 1}}
	_, err := e.Generate(r)
	require.ErrorIs(t, err, ErrAdapters)
	r.Adapters = []Adapting{{"0", 1}, {"2", 1}}
	spelled(t, begin(t, e, r))
	resident := 0
	for _, a := range e.Adapters() {
		resident += int(a.Bytes >> 20)
	}
	require.Equal(t, 2, resident)
	runtime.GC()
}

// TestAdaptersRefuse: what requests and clients that load adapters are told.
func TestAdaptersRefuse(t *testing.T) {
	e, loads := adapted(t, nil)
	for _, c := range []struct {
		asked []Adapting
		want  string
	}{
		{[]Adapting{{"none", 1}}, `there is no adapter called "none"`},
		{[]Adapting{{"0", 1}, {"0", 1}}, "is named twice"},
		{[]Adapting{{"0", 1e9}}, "the scale of adapter"},
		{make([]Adapting, 17), "17 adapters are asked for"},
	} {
		r := ask(prompts(1)[0], 1)
		r.Adapters = c.asked
		_, err := e.Generate(r)
		require.ErrorContains(t, err, c.want)
	}
	require.ErrorContains(t, e.AddAdapter(randomAdapter("0", 9, loads), false), "already")
	broken := Adapter{Name: "broken", Open: func(*ir.Program) (*lora.Loaded, error) { return nil, errors.New("is cut") }}
	require.ErrorContains(t, e.AddAdapter(broken, true), "is cut")
	require.False(t, e.DropAdapter("broken"), "what cannot be loaded is not known")
	require.True(t, e.DropAdapter("3"))
	require.ErrorContains(t, e.ScaleAdapters(map[int]float32{3: 1}), "no adapter of id 3")
	require.NoError(t, e.AddAdapter(randomAdapter("4", 9, loads), true))
	require.Equal(t, 5, e.Adapters()[3].ID, "an id is not given twice")

	require.NoError(t, e.ScaleAdapters(map[int]float32{0: 2}))
	plain, named := ask(prompts(1)[0], 8), ask(prompts(1)[0], 8)
	named.Adapters = []Adapting{{"0", 2}}
	require.Equal(t, spelled(t, begin(t, e, named)), spelled(t, begin(t, e, plain)))

	none := startFixture(t, fixture, nil)
	_, err := none.Generate(named)
	require.ErrorContains(t, err, "takes no adapters")
}

// TestOwnAdapters: a model's own adapters change all its answers as if each request named them, are added to those that
// requests name, and have no id; what is too much for the model, or cannot be opened, is an error of the model.
func TestOwnAdapters(t *testing.T) {
	loads := new(atomic.Int32)
	own := func(c *Config) { c.Own = []Adapter{randomAdapter("own", 1, loads)} }
	prompt := prompts(1)[0]
	with := func(named ...Adapting) Request {
		r := ask(prompt, 16)
		r.Adapters = named
		return r
	}
	other, _ := adapted(t, nil)
	e, _ := adapted(t, own)
	require.Len(t, e.Adapters(), 4)
	require.Equal(t, int32(1), loads.Load())
	require.NotEqual(t, spelled(t, begin(t, other, with())), spelled(t, begin(t, e, with())))
	require.Equal(t, spelled(t, begin(t, other, with(Adapting{"0", 1}))), spelled(t, begin(t, e, with())))
	require.Equal(t, spelled(t, begin(t, other, with(Adapting{"0", 1}, Adapting{"1", 1}))),
		spelled(t, begin(t, e, with(Adapting{"1", 1}))))
	require.False(t, e.DropAdapter("own"))
	alone := startFixture(t, fixture, own)
	require.Equal(t, spelled(t, begin(t, e, with())), spelled(t, begin(t, alone, with())))

	s := &adapters{program: e.spec.bound.Program, most: 1 << 20}
	many := make([]Adapter, ir.MostApplied)
	require.ErrorContains(t, s.keep(many), "16 adapters of its own, want less than 16")
	require.ErrorContains(t, s.keep([]Adapter{randomAdapter("a", 1, loads), randomAdapter("b", 2, loads)}), "take more than 1 MiB")
	broken := Adapter{Open: func(*ir.Program) (*lora.Loaded, error) { return nil, errors.New("torn") }}
	require.EqualError(t, s.keep([]Adapter{broken}), "torn")
	require.Len(t, s.own, 1)
}

// TestAdaptersLoadBesideSteps: while an adapter is loaded, requests with others and with none are answered, in as many
// steps as when none is loaded, and one more at most.
func TestAdaptersLoadBesideSteps(t *testing.T) {
	e, _ := adapted(t, nil)
	begun, proceed := make(chan struct{}), make(chan struct{})
	slow := randomAdapter("slow", 9, new(atomic.Int32))
	open := slow.Open
	slow.Open = func(p *ir.Program) (*lora.Loaded, error) {
		close(begun)
		<-proceed
		return open(p)
	}
	require.NoError(t, e.AddAdapter(slow, false))
	named := func(name string) Request {
		r := ask(prompts(1)[0], 60)
		r.Adapters = []Adapting{{name, 1}}
		return r
	}
	answer := func() (steps int) {
		before := e.Steps().Count
		for _, r := range []Request{named("0"), ask(prompts(1)[0], 60)} {
			spelled(t, begin(t, e, r))
		}
		return int(e.Steps().Count - before)
	}
	answer() // which loads the other adapter, and leaves prefixes
	want := answer()
	require.Greater(t, want, 100)

	before := begin(t, e, named("1"))
	waits := make(chan string)
	go func() {
		s, err := e.Generate(named("slow"))
		if err != nil {
			waits <- err.Error()
			return
		}
		waits <- spelled(t, s)
	}()
	<-begun
	spelled(t, before)
	require.InDelta(t, want, answer(), 1)
	select {
	case got := <-waits:
		t.Fatal("it was answered before its adapter was there: ", got)
	default:
	}
	close(proceed)
	require.Contains(t, <-waits, " ")
}
