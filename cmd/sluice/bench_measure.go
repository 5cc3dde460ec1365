package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/stages/report"
	"github.com/sluice-ai/sluice/stages/sample"
)

// measurement fills in the points of a result.
type measurement struct {
	*benchCmd
	e      *env
	engine *actors.Engine
	result *report.Bench
	random *rand.Rand
}

func (m *measurement) run(ctx context.Context) error {
	m.random = rand.New(rand.NewPCG(1, 2))
	before := m.engine.Steps()
	for _, depth := range m.Depth {
		prefixes := make([][]int32, m.Seqs) // of each sequence its own, as real ones have
		for i := range prefixes {
			prefixes[i] = m.tokens(depth)
		}
		if depth > 0 {
			if _, _, err := m.once(ctx, prefixes, 1); err != nil {
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
	m.result.ActorsShare = m.engine.Steps().Sub(before).ActorsShare()
	return nil
}

// point runs both sides in turns, so that what a shared machine does to one it does to the other.
func (m *measurement) point(ctx context.Context, p *report.Point, prefixes [][]int32) error {
	if _, _, err := m.prompt(ctx, p, prefixes); err != nil { // warms up
		return err
	}
	before := m.engine.Steps()
	ours := newRates(m.Runs)
	peers := make([]*rates, len(m.Compare))
	for i := range peers {
		peers[i] = newRates(m.Runs)
	}
	for run := range m.Runs {
		prefill, decode, err := m.prompt(ctx, p, prefixes)
		if err != nil {
			return err
		}
		ours.prefill[run], ours.decode[run] = prefill, decode
		for i, command := range m.Compare {
			if peers[i].name, prefill, decode, err = m.peer(ctx, command, p); err != nil {
				return fmt.Errorf("--compare %q: %w", command, err)
			}
			peers[i].prefill[run], peers[i].decode[run] = prefill, decode
		}
	}
	steps := m.engine.Steps().Sub(before)
	p.Prefill = report.Phase{Rate: report.SpreadOf(ours.prefill), Segments: m.segments(&steps.Prefill)}
	p.Decode = report.Phase{Rate: report.SpreadOf(ours.decode), Segments: m.segments(&steps.Decode)}
	for _, r := range peers {
		p.Prefill.Peers = append(p.Prefill.Peers, report.Against(r.name, ours.prefill, r.prefill))
		p.Decode.Peers = append(p.Decode.Peers, report.Against(r.name, ours.decode, r.decode))
	}
	return nil
}

// rates are tokens per second by run.
type rates struct {
	name            string
	prefill, decode []float64
}

func newRates(runs int) *rates {
	return &rates{prefill: make([]float64, runs), decode: make([]float64, runs)}
}

func (m *measurement) segments(w *actors.Work) []report.Segment {
	info := &m.engine.Info
	load := report.Load{Steps: float64(w.Steps), Rows: float64(w.Rows), Wanted: float64(w.Wanted),
		Sequences: float64(w.Sequences), Positions: float64(w.Positions), Seen: float64(w.Seen)}
	work := report.Work{Steps: load.Steps, Time: w.Time, Cost: report.Cost(info.Program, float64(info.KVBytes), load)}
	return m.result.Segments(&work)
}

// tokens are random ones, which no cache has seen.
func (m *measurement) tokens(n int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(m.random.IntN(m.engine.Info.Vocab))
	}
	return tokens
}

// prompt lets every sequence answer a new prompt on top of its prefix.
func (m *measurement) prompt(ctx context.Context, p *report.Point, prefixes [][]int32) (
	prefill, decode float64, err error) {
	prompts := make([][]int32, len(prefixes))
	for i, prefix := range prefixes {
		prompts[i] = append(prefix[:len(prefix):len(prefix)], m.tokens(p.Prompt)...)
	}
	return m.once(ctx, prompts, p.Generate)
}

// once answers prompts side by side. It returns tokens per second in prefill, of those that the cache did not hold,
// until the last sequence has its first token; and in decoding, from then until the last one ends.
func (m *measurement) once(ctx context.Context, prompts [][]int32, generate int) (prefill, decode float64, err error) {
	usages, errs := make([]actors.Usage, len(prompts)), make([]error, len(prompts))
	var wg sync.WaitGroup
	for i, tokens := range prompts {
		wg.Go(func() { usages[i], errs[i] = m.answer(ctx, tokens, generate) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, 0, err
	}
	var computed int
	var first, last time.Duration
	for _, u := range usages {
		computed += u.Prompt - u.Cached
		first = max(first, u.Queue+u.Prefill)
		last = max(last, u.Queue+u.Prefill+u.Decode)
	}
	if len(usages) == 1 {
		first, last = usages[0].Prefill, usages[0].Prefill+usages[0].Decode
	}
	return rate(computed, first), rate(len(prompts)*generate, last-first), nil
}

func (m *measurement) answer(ctx context.Context, tokens []int32, generate int) (actors.Usage, error) {
	p := sample.Defaults()
	p.Temp = 0
	stream, err := m.engine.Generate(actors.Request{Tokens: tokens, MaxTokens: generate + 1, Sampling: p, IgnoreEOG: true})
	if err != nil {
		return actors.Usage{}, err
	}
	defer stream.Close()
	var ev actors.Event
	for {
		err := stream.Next(ctx, &ev)
		if errors.Is(err, io.EOF) {
			return stream.Usage(), nil
		}
		if err != nil {
			return actors.Usage{}, err
		}
	}
}

// peer runs another engine once.
func (m *measurement) peer(ctx context.Context, command string, p *report.Point) (
	name string, prefill, decode float64, err error) {
	name, words, err := report.Command(command, report.Placeholders{Model: m.Model, Threads: m.Threads,
		Prompt: p.Prompt, Tokens: p.Generate, Depth: p.Depth, Seqs: m.Seqs})
	if err != nil {
		return "", 0, 0, err
	}
	var faults bytes.Buffer
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stderr = &faults
	output, err := cmd.Output()
	if err != nil {
		return "", 0, 0, errors.Join(ctx.Err(), fmt.Errorf("%w: %s", err, printable(lastLine(faults.String()))))
	}
	prefill, decode, err = report.ParsePeer(output)
	return name, prefill, decode, err
}

// lastLine is where programs say why they failed.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
