package measure

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/report"
)

// command fills in a peer's command for a point.
func (c *Bench) command(template string, p *report.Point) (name string, words []string, err error) {
	return report.Command(template, report.Placeholders{Model: c.Model, Threads: c.Threads, Prompt: p.Prompt,
		Tokens: p.Generate, Depth: p.Depth, Seqs: c.Seqs})
}

// checkPeers checks, before anything is loaded, that the peers' commands exist and that their placeholders are valid.
func (c *Bench) checkPeers() error {
	for _, template := range c.Compare {
		for _, p := range []struct {
			name string
			must bool
		}{{"{prompt}", len(c.Prompt) > 1}, {"{depth}", len(c.Depth) > 1}, {"{seqs}", c.Seqs > 1}} {
			if p.must && !strings.Contains(template, p.name) {
				return env.Usagef("--compare: %q does not say %s: it would do other work than is measured here", template, p.name)
			}
		}
		_, words, err := c.command(template, &report.Point{})
		if err != nil {
			return env.Usagef("--compare: %v", err)
		}
		if _, err := exec.LookPath(words[0]); err != nil {
			return env.Usagef("--compare: %s cannot be run: %v", env.Printable(words[0]), errors.Unwrap(err))
		}
	}
	return nil
}

// peer runs another engine once.
func (m *measurement) peer(ctx context.Context, template string, p *report.Point, run int) (
	name string, speeds report.Speeds, err error) {
	name, words, err := m.command(template, p)
	if err != nil {
		return "", report.Speeds{}, err
	}
	m.progress(p, run, name)
	output, err := execute(ctx, words)
	if err != nil {
		return "", report.Speeds{}, err
	}
	speeds, err = report.ParsePeer(output, p.Generate > 0)
	return name, speeds, err
}

// The end of a command's output is kept, where results and errors are.
const (
	mostOutput = 1 << 20
	mostFaults = 4 << 10
	closeDelay = time.Second // for processes that an ended command left behind
)

// execute runs a command and returns what it printed.
func execute(ctx context.Context, words []string) ([]byte, error) {
	output, faults := &tail{most: mostOutput}, &tail{most: mostFaults}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = output, faults, closeDelay
	err := cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return output.kept, nil
	}
	if said := lastLine(string(faults.kept)); said != "" {
		err = fmt.Errorf("%w: %s", err, env.Printable(said))
	}
	return nil, errors.Join(ctx.Err(), err)
}

// tail is a writer that keeps the last bytes written to it.
type tail struct {
	most int
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if extra := len(t.kept) - t.most; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(b), nil
}

// lastLine is the last line of a text, where programs say why they failed.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
