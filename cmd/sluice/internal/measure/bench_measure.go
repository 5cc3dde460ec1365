package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cpu/probe"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/report"
	"github.com/sluice-ai/sluice/stages/sample"
)

// measurement runs the points of a bench and fills in its result.
type measurement struct {
	*Bench
	e      *env.Env
	engine *actors.Engine
	result *report.Bench
	device backend.Device
	halves bool // the device multiplies prompts in half precision
	random *rand.Rand
	line   env.StatusLine
	names  []string // of the adapters that sequences have in turn; empty: they have none
	turn   int      // of the next sequence

	looks  []report.Look
	looked time.Time
}

// lookEvery is the least time between two measurements of the ceilings.
const lookEvery = time.Second

// look measures the ceilings: before each run and after the last, so that a disturbance of the machine affects both.
func (m *measurement) look() error {
	if m.result.Beside || time.Since(m.looked) < lookEvery {
		return nil
	}
	if m.device.Traits().Memory == backend.OwnMemory {
		meter := m.device.Traits().Meter
		if meter == nil {
			m.result.Beside = true
			return nil
		}
		read, multiply, err := meter.Ceilings(m.halves)
		if err != nil {
			return fmt.Errorf("measuring %s: %w", m.result.Device, err)
		}
		if len(read) == 0 {
			m.result.Beside = true
			return nil
		}
		m.looks = append(m.looks, report.Look{Read: read, Multiply: multiply})
		m.looked = time.Now()
		return nil
	}
	threads := min(m.Threads, runtime.NumCPU())
	read, err := probe.Read(threads)
	if err != nil {
		return fmt.Errorf("measuring the memory: %w", err)
	}
	multiply := probe.Multiply(strings.TrimPrefix(m.result.Device, "cpu "), threads)
	m.looks = append(m.looks, report.Look{Read: read, Multiply: multiply})
	m.looked = time.Now()
	return nil
}

// all measures all points, and relates the results to the ceilings.
func (m *measurement) all(ctx context.Context) error {
	if err := m.addAdapters(); err != nil {
		return err
	}
	if err := m.run(ctx); err != nil {
		return err
	}
	if err := m.look(); err != nil || m.result.Beside {
		return err
	}
	m.result.Relate(m.looks)
	return nil
}

func (m *measurement) run(ctx context.Context) error {
	m.random = rand.New(rand.NewPCG(1, 2))
	defer m.line.Clear()
	before := m.engine.Steps()
	for _, depth := range m.Depth {
		prefixes := make([][]int32, m.Seqs) // each sequence has its own, as in real use
		for i := range prefixes {
			prefixes[i] = m.tokens(depth)
		}
		if depth > 0 {
			if _, err := m.once(ctx, prefixes, 1); err != nil {
				return err
			}
		}
		for _, prompt := range m.Prompt {
			p := report.Point{Depth: depth, Prompt: prompt, Generate: m.Generate}
			if err := m.point(ctx, &p, prefixes); err != nil {
				return err
			}
			m.result.Points = append(m.result.Points, p)
		}
	}
	if m.result.Beside {
		return nil
	}
	m.result.ActorsShare = m.engine.Steps().Sub(before).ActorsShare()
	return nil
}

// point runs us and the peers in turns, so that the load of a shared machine affects both.
func (m *measurement) point(ctx context.Context, p *report.Point, prefixes [][]int32) error {
	if err := m.warm(ctx, p, prefixes); err != nil {
		return err
	}
	ours := make([]report.Speeds, m.Runs)
	peers := len(m.Compare) + min(m.Adapters, 1)
	names, theirs := make([]string, peers), make([][]report.Speeds, peers)
	for run := range m.Runs {
		m.progress(p, run, "")
		if err := m.look(); err != nil {
			return err
		}
		before := m.engine.Steps()
		var err error
		if ours[run], err = m.prompt(ctx, p, prefixes); err != nil {
			return err
		}
		if !m.result.Beside {
			steps := m.engine.Steps().Sub(before)
			p.Prefill.Ran(m.work(&steps.Prefill), len(m.looks)-1)
			p.Decode.Ran(m.work(&steps.Decode), len(m.looks)-1)
		}
		for i, command := range m.Compare {
			name, speeds, err := m.peer(ctx, command, p, run)
			if err != nil {
				return fmt.Errorf("--compare %q: %w", command, err)
			}
			names[i], theirs[i] = name, append(theirs[i], speeds)
		}
		if m.Adapters > 0 {
			speeds, err := m.plain(ctx, p, prefixes)
			if err != nil {
				return err
			}
			names[peers-1], theirs[peers-1] = withoutAdapters, append(theirs[peers-1], speeds)
		}
	}
	p.Compare(ours, names, theirs)
	return nil
}

// warm makes a run that does not count. If weights stream, it waits until all slots that were free are full.
func (m *measurement) warm(ctx context.Context, p *report.Point, prefixes [][]int32) error {
	cold, err := m.prompt(ctx, p, prefixes)
	if err != nil || m.result.Expected == 0 {
		return err
	}
	p.Cold = &cold
	const look, patience = 20 * time.Millisecond, 500 // how often nothing may have come
	for came, idle := uint64(0), 0; idle < patience; idle++ {
		now := m.engine.Snapshot().Streamed
		if !now.Filling {
			break
		}
		if now.AheadBytes != came {
			came, idle = now.AheadBytes, 0
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
	return nil
}

// progress shows on a terminal which run is under way, and which peer is running, in a status line.
func (m *measurement) progress(p *report.Point, run int, peer string) {
	if !m.e.IsTerminal(m.e.Stderr) {
		return
	}
	if peer != "" {
		peer = ", waiting for " + env.Printable(peer)
	}
	m.line.Show(m.e.Stderr, fmt.Sprintf("prompt %d at depth %d: run %d of %d%s", p.Prompt, p.Depth, run+1, m.Runs, peer),
		m.e.Columns(m.e.Stderr))
}

func (m *measurement) work(w *actors.Work) report.Work {
	info := &m.engine.Info
	load := report.Load{Steps: float64(w.Steps), Rows: float64(w.Rows), Wanted: float64(w.Wanted),
		Sequences: float64(w.Sequences), Positions: float64(w.Positions), Seen: float64(w.Seen)}
	return report.Work{Steps: load.Steps, Time: w.Time, Gaps: w.Gaps,
		Cost: report.Cost(info.Program, float64(info.KV.Bytes), load)}
}

// tokens are n random tokens, so that no cache holds their prefix.
func (m *measurement) tokens(n int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(m.random.IntN(m.engine.Info.Vocab))
	}
	return tokens
}

// prompt runs a new random prompt in every sequence, after its prefix.
func (m *measurement) prompt(ctx context.Context, p *report.Point, prefixes [][]int32) (report.Speeds, error) {
	prompts := make([][]int32, len(prefixes))
	for i, prefix := range prefixes {
		prompts[i] = append(prefix[:len(prefix):len(prefix)], m.tokens(p.Prompt)...)
	}
	return m.once(ctx, prompts, p.Generate)
}

// timedAnswer is how long an answer took.
type timedAnswer struct {
	actors.Usage
	tokens []time.Time // when each token arrived
}

// texts computes vectors of prompts, all at the same time.
func (m *measurement) texts(ctx context.Context, prompts [][]int32) (s report.Speeds, err error) {
	began, read := time.Now(), 0
	streams := make([]*actors.Stream, len(prompts))
	for i, tokens := range prompts {
		if streams[i], err = m.engine.Embed("", tokens); err != nil {
			return s, err
		}
		defer streams[i].Close()
		read += len(tokens)
	}
	for _, stream := range streams {
		if _, err := m.engine.Vector(ctx, stream, m.engine.Info.Program.Pooling); err != nil {
			return s, err
		}
	}
	return report.Speeds{Prefill: env.Rate(read, time.Since(began))}, nil
}

// once answers prompts at the same time. The prefill, counting tokens that the cache did not hold, lasts until all
// sequences have their first token; decoding lasts from then until the last one ends.
func (m *measurement) once(ctx context.Context, prompts [][]int32, generate int) (s report.Speeds, err error) {
	if generate == 0 {
		return m.texts(ctx, prompts)
	}
	replies, errs := make([]timedAnswer, len(prompts)), make([]error, len(prompts))
	var wg sync.WaitGroup
	for i, adapters := range m.wearing(len(prompts)) {
		replies[i].tokens = make([]time.Time, 0, generate+1)
		wg.Go(func() { errs[i] = m.answer(ctx, prompts[i], adapters, &replies[i]) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return s, err
	}
	var computed int
	var first, last time.Duration
	for _, r := range replies {
		computed += r.Prompt - r.Cached
		first = max(first, r.Queue+r.Prefill)
		last = max(last, r.Queue+r.Prefill+r.Decode)
	}
	if len(replies) == 1 {
		first, last = replies[0].Prefill, replies[0].Prefill+replies[0].Decode
	}
	return report.Speeds{Prefill: env.Rate(computed, first), Decode: env.Rate(len(prompts)*generate, last-first),
		Step: env.Rate(len(prompts), medianStep(replies[0].tokens))}, nil
}

// medianStep is the median time between two tokens: all sequences take part in each step.
func medianStep(tokens []time.Time) time.Duration {
	steps := make([]time.Duration, 0, len(tokens))
	for i := range len(tokens) - 1 {
		steps = append(steps, tokens[i+1].Sub(tokens[i]))
	}
	slices.Sort(steps)
	return steps[len(steps)/2]
}

// answer reads an answer of as many tokens as r has room for.
func (m *measurement) answer(ctx context.Context, prompt []int32, adapters []actors.Adapting, r *timedAnswer) error {
	p := sample.Defaults()
	p.Temp = 0
	stream, err := m.engine.Generate(
		actors.Request{Tokens: prompt, Adapters: adapters, MaxTokens: cap(r.tokens), Sampling: p, IgnoreEOG: true})
	if err != nil {
		return err
	}
	defer stream.Close()
	var ev actors.Event
	for {
		err := stream.Next(ctx, &ev)
		if errors.Is(err, io.EOF) {
			r.Usage = stream.Usage()
			return nil
		}
		if err != nil {
			return err
		}
		if ev.HasToken {
			r.tokens = append(r.tokens, ev.At)
		}
	}
}
