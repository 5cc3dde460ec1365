package answer

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// renamed is one engine whose name changes.
type renamed struct {
	name   string
	engine *actors.Engine
}

func (r *renamed) Names() []string { return []string{r.name} }

func (r *renamed) Engine(name string) *actors.Engine {
	if name != r.name {
		return nil
	}
	return r.engine
}

// TestDirectory: what was found out about a model is kept as long as it has its name, and no longer.
func TestDirectory(t *testing.T) {
	device, err := cpu.New(1, "")
	require.NoError(t, err)
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	engine, err := actors.Start(t.Context(), actors.Config{Model: actors.Model{File: f, Context: 256}, Device: device})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close(context.Background())) }()

	models := &renamed{"a", engine}
	s := New(models, nil, 0)
	m, fault := s.Asked("whatever")
	require.Nil(t, fault)
	require.Equal(t, "a", m.Name)
	require.Equal(t, engine.Info.Vocab, m.Vocab)
	require.Equal(t, engine.Info.Sampling, m.Sampling)
	again, _ := s.Named("a")
	require.Same(t, m, again)

	require.Same(t, m.Breakers(nil), m.Breakers(nil), "the usual ones are found once")
	require.NotEqual(t, m.Breakers(nil), m.Breakers([]string{}), "and are not none")
	require.Equal(t, m.Breakers(nil), m.Breakers([]string{"\n", ":", `"`, "*"}))

	models.name = "b"
	m, fault = s.Asked("a")
	require.Nil(t, fault)
	require.Equal(t, "b", m.Name)
	require.Len(t, s.known, 1)
	_, fault = s.Named("a")
	require.NotNil(t, fault)
}
