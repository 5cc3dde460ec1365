package answer

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// renamed is one engine whose name changes.
type renamed struct {
	name   string
	engine *actors.Engine
	done   int // uses that have ended
}

func (r *renamed) Names() []string { return []string{r.name} }

func (r *renamed) Engine(name string) *actors.Engine {
	if name != r.name {
		return nil
	}
	return r.engine
}

func (r *renamed) Use(_ context.Context, name string) (*actors.Engine, func(), error) {
	if e := r.Engine(name); e != nil {
		return e, func() { r.done++ }, nil
	}
	return nil, nil, actors.ErrUnknown
}

func (r *renamed) Unload(string) error { return nil }

func (r *renamed) Header(string) *actors.Header { return nil }

func (r *renamed) Status(string) actors.ModelStatus { return actors.ModelStatus{} }

// nowhere is a connection that nobody is at the other end of.
type nowhere struct{ net.Conn }

func (nowhere) SetWriteDeadline(time.Time) error { return nil }

// TestDirectory: what was found out about a model is kept as long as it has its name, and no longer.
func TestDirectory(t *testing.T) {
	device, err := cpu.New(1, "")
	require.NoError(t, err)
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	engine, err := actors.Start(t.Context(), actors.Config{Model: actors.Model{File: f, Context: 256}, Device: device})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close(context.Background())) }()

	models := &renamed{name: "a", engine: engine}
	s := New(models, nil, 0)
	rc := &fasthttp.RequestCtx{}
	rc.Init2(nowhere{}, nil, false)
	x := exchange.Begin(t.Context(), rc, "", 0, zerolog.Nop(), func(*exchange.Exchange, int) {})
	m, fault := s.Asked(x, "whatever")
	require.Nil(t, fault)
	require.Equal(t, "a", m.Name)
	require.Equal(t, engine.Info.Vocab, m.Vocab)
	require.Equal(t, engine.Info.Sampling, m.Sampling)
	again, _ := s.Entry("a")
	require.Same(t, m, again.Model)

	require.Same(t, m.Breakers(nil), m.Breakers(nil), "the usual ones are found once")
	require.NotEqual(t, m.Breakers(nil), m.Breakers([]string{}), "and are not none")
	require.Equal(t, m.Breakers(nil), m.Breakers([]string{"\n", ":", `"`, "*"}))

	requireTokensPaid(t, s, x, m)

	models.name = "b"
	m, fault = s.Asked(x, "a")
	require.Nil(t, fault)
	require.Equal(t, "b", m.Name)
	require.Len(t, s.known, 1)
	_, fault = s.Entry("a")
	require.NotNil(t, fault)

	models.name = "c"
	models.engine = nil
	again, fault = s.Entry("c")
	require.Nil(t, fault)
	require.Nil(t, again.Model, "it does not run")
	require.Zero(t, models.done)
	x.Answered(200)
	require.Equal(t, 2, models.done, "it may leave when the answer is complete")
}

// requireTokensPaid: tokens that are kept until they are written are paid for.
func requireTokensPaid(t *testing.T, s *Service, x *exchange.Exchange, m *Model) {
	t.Helper()
	s.kept = newStock(0, 1)
	few, fault := s.Tokens(x, m, []Text{{Text: "a b"}, {Tokens: []int32{7}}}, false, true)
	require.Nil(t, fault)
	require.EqualValues(t, 7, few[len(few)-1])
	_, fault = s.Tokens(x, m, []Text{{Text: strings.Repeat(" a", keptFree)}}, false, true)
	require.NotNil(t, fault)
	require.Equal(t, "answer_too_large", fault.Code)
}
