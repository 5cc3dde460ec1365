package measure

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/report"
	"github.com/sluice-ai/sluice/stages/model/lora"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// adapterRank is the rank of the adapters that a bench makes: as most that are trained have.
const adapterRank = 16

// withoutAdapters names the runs in which no sequence has an adapter.
const withoutAdapters = "without adapters"

// checkAdapters refuses what is not measured with adapters.
func (c *Bench) checkAdapters() error {
	const most = 1024
	switch {
	case c.Adapters == 0:
		return nil
	case len(c.Lora) > 0:
		return env.Usagef("--adapters measures random adapters, and --lora names others: leave one out")
	case len(c.Depth) > 1 || c.Depth[0] > 0:
		return env.Usagef("--adapters: another run has other adapters, whose caches hold nothing before: leave --depth out")
	}
	return env.Within("--adapters", c.Adapters, 1, most)
}

// adapt has a model take the adapters that are measured, all of them at once.
func (c *Bench) adapt(m *actors.Model, file *gguf.File) {
	if c.Adapters == 0 {
		return
	}
	m.Adapted = true
	for i := range file.Tensors {
		if t := &file.Tensors[i]; len(t.Shape) == 2 && strings.HasPrefix(t.Name, "blk.") {
			m.Adapters += 2 * adapterRank * int64(ir.Padded(t.Shape[0])+ir.Padded(t.Shape[1]))
		}
	}
	m.Adapters *= int64(c.Adapters)
}

// addAdapters makes and loads the adapters that are measured: loading them counts nowhere.
func (m *measurement) addAdapters() error {
	for i := range m.Adapters {
		m.names = append(m.names, fmt.Sprint(i+1))
		err := m.engine.AddAdapter(actors.Adapter{Name: m.names[i], Open: func(p *ir.Program) (*lora.Loaded, error) {
			return lora.Random(p, adapterRank, uint64(i)).Bind(p)
		}}, true)
		if err != nil {
			return fmt.Errorf("--adapters: %w", err)
		}
	}
	return nil
}

// wearing gives each of some sequences another adapter, those whose turn it is: all are measured in turn. Without
// --adapters they have those of --lora, as requests that name none.
func (m *measurement) wearing(sequences int) [][]actors.Adapting {
	all := make([][]actors.Adapting, sequences)
	if m.Adapters == 0 {
		return all
	}
	for i := range all {
		if all[i] = []actors.Adapting{}; len(m.names) > 0 {
			all[i] = append(all[i], actors.Adapting{Name: m.names[m.turn%len(m.names)], Scale: 1})
			m.turn++
		}
	}
	return all
}

// plain makes a run of the same work without adapters.
func (m *measurement) plain(ctx context.Context, p *report.Point, prefixes [][]int32) (report.Speeds, error) {
	names := m.names
	m.names = nil
	defer func() { m.names = names }()
	return m.prompt(ctx, p, prefixes)
}
