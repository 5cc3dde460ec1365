package server

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// Inside is the body of GET /debug/actors. The names of its fields are part of the interface: they say whether a
// value is in seconds, bytes or a plain count. Counts and times are sums since the start, except for those of the
// present state. Fields outside Models describe the first model that runs; each model has its own in Models.
type Inside struct {
	UptimeSeconds float64         `json:"uptime_seconds"`
	Models        []ModelInside   `json:"models"`
	Device        DeviceInside    `json:"device"`
	Actors        []ActorInside   `json:"actors"` // actors that belong to no model
	Credits       []CreditsInside `json:"credits"`
	DeadLetters   uint64          `json:"dead_letters"`
	Unexpected    uint64          `json:"unexpected_messages"`

	Edges []actors.Declared `json:"edges"` // as they are declared
	Spans []SpanInside      `json:"spans"` // the last ones
}

// ModelInside describes one model.
// Wide: they are the fields of the JSON that is printed.
type ModelInside struct {
	Name            string           `json:"name"`
	State           string           `json:"state"`             // as in GET /v1/models
	Failure         string           `json:"failure,omitempty"` // why it cannot go on
	WaitedFor       int              `json:"waited_for"`        // number of requests that wait until it is loaded
	RequestsOpen    int64            `json:"requests_open"`
	Requests        uint64           `json:"requests"`
	Running         int64            `json:"sequences_running"`
	Waiting         int64            `json:"sequences_waiting"`
	PromptTokens    uint64           `json:"prompt_tokens"`
	GeneratedTokens uint64           `json:"generated_tokens"`
	FirstTokens     uint64           `json:"first_tokens"`
	FirstToken      float64          `json:"first_token_seconds"` // from requests to first tokens, summed
	Gaps            uint64           `json:"token_gaps"`
	Between         float64          `json:"token_gap_seconds"` // between tokens, summed
	Steps           uint64           `json:"steps"`
	StepsFailed     uint64           `json:"steps_failed"`
	Rows            uint64           `json:"rows"`
	BlocksUsed      int              `json:"kv_blocks_used"`
	BlocksCached    int              `json:"kv_blocks_cached"`
	BlocksFree      int              `json:"kv_blocks_free"`
	ExpertsFound    uint64           `json:"experts_found"`
	ExpertsMissed   uint64           `json:"experts_missed"`
	StreamedBytes   uint64           `json:"streamed_bytes"`
	WeightBytes     map[string]int64 `json:"weight_bytes"` // by the tier of their homes
	Device          DeviceInside     `json:"device"`
	Actors          []ActorInside    `json:"actors"`
	Credits         []CreditsInside  `json:"credits"`
}

// DeviceInside divides a device's time by its causes, in seconds.
type DeviceInside struct {
	ID        string             `json:"id"`
	Uptime    float64            `json:"uptime_seconds"` // since it was opened: the sum of the times below
	Computing float64            `json:"computing_seconds"`
	Idle      map[string]float64 `json:"idle_seconds"` // by cause
}

// ActorInside counts an actor's work.
type ActorInside struct {
	ID       string  `json:"id"`
	Messages uint64  `json:"messages"`
	Refused  uint64  `json:"refused"`
	Restarts uint64  `json:"restarts"`
	Mailbox  int64   `json:"mailbox"` // messages waiting now
	Most     int64   `json:"mailbox_peak"`
	Busy     float64 `json:"busy_seconds"`
	Wait     float64 `json:"wait_seconds"` // of messages in the mailbox, summed
}

// CreditsInside describes the credits of an edge that counts them.
type CreditsInside struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Carries string `json:"carries"`
	Held    int    `json:"held"` // now
	Limit   int    `json:"limit"`
}

// SpanInside describes a span of the trace.
type SpanInside struct {
	Track   string  `json:"track"`
	Kind    string  `json:"kind"`
	Cause   string  `json:"cause,omitempty"` // why the device was idle, for kind idle
	Step    uint64  `json:"step,omitempty"`
	Segment *int    `json:"segment,omitempty"`
	Layer   *int    `json:"layer,omitempty"`
	Group   *int    `json:"group,omitempty"`
	At      float64 `json:"at_seconds"` // since the start
	Wait    float64 `json:"wait_seconds"`
	Work    float64 `json:"work_seconds"`
}

// debugActors serves GET /debug/actors.
func (s *Server) debugActors(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	about := Inside{Models: []ModelInside{}, Edges: actors.Edges()}
	var house *actors.House
	for _, name := range s.models.Names() {
		m, status := ModelInside{Name: name}, s.models.Status(name)
		if engine := s.models.Engine(name); engine != nil {
			m = look(name, engine.Snapshot())
			if err := engine.Health(); err != nil {
				m.Failure = err.Error()
			}
			m.Actors, m.Credits = lookActors(engine.Status()), lookCredits(engine.Credits())
			m.Device, m.WeightBytes = lookDevice(engine.House()), map[string]int64{}
			for tier, bytes := range engine.Plan().ByTier() {
				m.WeightBytes[tier.String()] = bytes
			}
			if house == nil {
				house = engine.House()
			}
		}
		m.State, m.WaitedFor = status.Phase.String(), status.Waiting
		about.Models = append(about.Models, m)
	}
	if house != nil {
		about.lookAt(house)
	}
	about.UptimeSeconds = time.Since(s.began).Seconds()
	wire.WriteJSON(rc, about)
	return nil
}

// lookAt fills in the part that belongs to the house and to no model.
func (about *Inside) lookAt(h *actors.House) {
	const shown = 256
	about.Device = lookDevice(h)
	about.Actors, about.Credits = lookActors(h.Status()), lookCredits(h.Credits())
	about.DeadLetters, about.Unexpected = h.Faults()
	spans := h.Spans()
	for i := range spans[max(0, len(spans)-shown):] {
		about.Spans = append(about.Spans, lookSpan(&spans[max(0, len(spans)-shown)+i]))
	}
}

func lookDevice(h *actors.House) DeviceInside {
	t := h.DeviceTime()
	d := DeviceInside{ID: h.Device(), Uptime: t.Wall().Seconds(), Computing: t.Computing.Seconds(),
		Idle: map[string]float64{}}
	for c, idle := range t.Idle {
		d.Idle[trace.Cause(c).String()] = idle.Seconds()
	}
	return d
}

func look(name string, s actors.Snapshot) ModelInside {
	return ModelInside{
		Name: name, RequestsOpen: s.Open, Requests: s.Requests, Running: s.Running, Waiting: s.Waiting,
		PromptTokens: s.PromptTokens, GeneratedTokens: s.Generated, Steps: s.Steps.Count, StepsFailed: s.FailedSteps,
		FirstTokens: s.FirstToken.Count, FirstToken: s.FirstToken.Sum.Seconds(),
		Gaps: s.BetweenTokens.Count, Between: s.BetweenTokens.Sum.Seconds(),
		Rows: s.Steps.Rows, BlocksUsed: s.KV.Used, BlocksCached: s.KV.Cached, BlocksFree: s.KV.Free,
		ExpertsFound: s.Streamed.Found, ExpertsMissed: s.Streamed.Missed,
		StreamedBytes: s.Streamed.StepBytes + s.Streamed.AheadBytes + s.Streamed.Guessed,
	}
}

func lookActors(all []run.Status) []ActorInside {
	out := make([]ActorInside, len(all))
	for i, a := range all {
		out[i] = ActorInside{a.ID, a.Handled, a.Refused, a.Restarts, a.Depth, a.Peak, a.Busy.Seconds(), a.Waited.Seconds()}
	}
	return out
}

func lookCredits(all []run.Credits) []CreditsInside {
	out := make([]CreditsInside, len(all))
	for i, c := range all {
		out[i] = CreditsInside(c)
	}
	return out
}

func lookSpan(s *trace.Span) SpanInside {
	out := SpanInside{Track: s.Track, Kind: s.Kind.String(), Step: s.Step, Segment: index(s.Segment),
		Layer: index(s.Layer), Group: index(s.Group), At: s.At.Seconds(), Wait: s.Wait.Seconds(), Work: s.Work.Seconds()}
	if s.Kind == trace.Idle {
		out.Cause = s.Cause.String()
	}
	return out
}

// index returns nil for -1, which stands for no index, else a pointer to n.
func index(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

// Bounds of the length of a requested trace.
const (
	usualTrace = 5 // seconds
	longTrace  = 300
	mostTraced = 256 << 20 // bytes
	mostTraces = 4         // at a time: each slows the engine, and keeps what its client does not read
)

// debugTrace serves GET /debug/trace?seconds=N: a trace for Perfetto of the next N seconds. The query's model names
// the model to record, by default the first one that runs.
func (s *Server) debugTrace(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	seconds := usualTrace
	if given := rc.QueryArgs().Peek("seconds"); given != nil {
		n, err := fasthttp.ParseUint(given)
		if err != nil || n < 1 || n > longTrace {
			return wire.Invalid("seconds", "invalid_seconds", "seconds is %.20q: want a whole number from 1 to %d",
				given, longTrace)
		}
		seconds = n
	}
	var house *actors.House
	wanted := string(rc.QueryArgs().Peek("model"))
	for _, name := range s.models.Names() {
		if engine := s.models.Engine(name); engine != nil && house == nil && (wanted == "" || wanted == name) {
			house = engine.House()
		}
	}
	if house == nil {
		return wire.Unavailable("no_model", "no such model is running: try again when one is")
	}
	if s.traces.Add(1) > mostTraces {
		s.traces.Add(-1)
		return wire.Unavailable("overloaded", "%d traces are being written already: try again when one has ended", mostTraces)
	}
	x.Watch()
	x.Stream(rc, "application/json", []byte("\n"), func(w *exchange.Writer) {
		defer s.traces.Add(-1)
		ctx, cancel := context.WithTimeout(x.Context, time.Duration(seconds)*time.Second)
		defer cancel()
		if err := house.Record(ctx, sending{w}, mostTraced); err != nil {
			x.Log.Debug().Err(err).Msg("the trace broke off")
		}
	})
	return nil
}

// sending makes an io.Writer of a stream.
type sending struct{ *exchange.Writer }

// Write implements io.Writer.
func (s sending) Write(p []byte) (int, error) {
	if err := s.Send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}
