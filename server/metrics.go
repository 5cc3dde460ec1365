package server

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/internal/trace/stall"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/swap"
)

// metrics holds the counters behind GET /metrics.
type metrics struct {
	inFlight prometheus.Gauge
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	write    fasthttp.RequestHandler
}

func newMetrics(models answer.Models, waiting func(model string) int, pictures *drawn, o *Options) *metrics {
	registry := prometheus.NewRegistry()
	m := &metrics{
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_http_requests_in_flight", Help: "HTTP requests being answered.",
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_http_requests_total", Help: "HTTP requests answered.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_http_request_seconds", Help: "Time from a request to the end of its answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"route"}),
		write: fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_build_info", Help: "1, with what this program was built from.",
		ConstLabels: prometheus.Labels{"version": o.Version},
	})
	build.Set(1)
	registry.MustRegister(build, m.inFlight, m.requests, m.seconds, engineCollector{models, waiting, o.MetricsCompat},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(pictures.collectors()...)
	return m
}

func (m *metrics) answered(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

func (s *Server) measured(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
	s.metrics.write(rc)
	return nil
}

// engineCollector turns the engines' snapshots into metrics on each scrape. If there are several models, a label
// names the model.
type engineCollector struct {
	models  answer.Models
	waiting func(model string) int
	compat  []Compat
}

// Describe implements prometheus.Collector. It sends nothing, since the set of actors changes.
func (engineCollector) Describe(chan<- *prometheus.Desc) {}

func (c engineCollector) Collect(out chan<- prometheus.Metric) {
	names, houses := c.models.Names(), map[*actors.House]string{}
	for _, name := range names {
		send, status := sender{out: out, prefix: "sluice_", label: "model", model: name}, c.models.Status(name)
		if len(names) == 1 {
			send.model = ""
		}
		loaded := 0.0
		if status.Phase == swap.Ready {
			loaded = 1
		}
		send.gauge("model_loaded", "1 while the model is loaded.", loaded)
		send.gauge("model_waited_for", "Requests that wait until the model is loaded.", float64(status.Waiting))
		if engine := c.models.Engine(name); engine != nil {
			send.gauge("answers_waiting", "Answers that wait for a place among those that are computed.",
				float64(c.waiting(name)))
			snapshot := engine.Snapshot()
			collect(send, snapshot)
			for _, other := range c.compat {
				other.collect(out, name, len(names) > 1, engine, &snapshot, c.waiting(name))
			}
			const bits = "Bits of a cached value of K, and of V, scales and all."
			send.gauge("kv_bits", bits, engine.Info.KV.BitsK, "of", "k")
			send.gauge("kv_bits", bits, engine.Info.KV.BitsV, "of", "v")
			send.gauge("kv_token_bytes", "Bytes of K and V of a token, in all layers.", float64(engine.Info.KV.Bytes))
			for tier, bytes := range engine.Plan().ByTier() {
				send.gauge("weights_bytes", "Bytes of weights by where their homes are.", float64(bytes), "tier", tier.String())
			}
			houses[engine.House()] = name
		}
	}
	for h, name := range houses { // models of one house share its device: it is reported once
		send := sender{out: out, prefix: "sluice_", label: "model", model: name}
		if len(houses) == 1 {
			send.model = ""
		}
		collectDevice(send, h.Device(), h.DeviceTime())
	}
}

func collect(send sender, s actors.Snapshot) {
	send.gauge("requests_open", "Requests that are not finished.", float64(s.Open))
	send.count("requests_total", "Requests opened.", float64(s.Requests))
	send.count("prompt_tokens_total", "Tokens of prompts.", float64(s.PromptTokens))
	send.count("generated_tokens_total", "Tokens generated.", float64(s.Generated))
	send.count("guessed_tokens_total", "Tokens that were guessed and tried.", float64(s.Proposed))
	send.count("guessed_tokens_right_total", "Those of them that were drawn.", float64(s.Accepted))
	send.count("drafted_tokens_total", "Tokens that a draft model or a head guessed and that were tried.", float64(s.Drafted))
	send.count("drafted_tokens_right_total", "Those of them that were drawn.", float64(s.DraftedRight))
	send.gauge("sequences", "Sequences by state.", float64(s.Running), "state", "running")
	send.gauge("sequences", "Sequences by state.", float64(s.Waiting), "state", "waiting")

	send.count("steps_total", "Steps computed.", float64(s.Steps.Count))
	send.count("steps_failed_total", "Steps that failed and were repeated.", float64(s.FailedSteps))
	send.count("step_rows_total", "Rows of all steps.", float64(s.Steps.Rows))
	const seconds = "Time of steps that followed one another, by what it was spent on."
	rest := s.Steps.Wall - s.Steps.Compute - s.Steps.Sample
	send.count("step_seconds_total", seconds, s.Steps.Compute.Seconds(), "on", "compute")
	send.count("step_seconds_total", seconds, s.Steps.Sample.Seconds(), "on", "sample")
	send.count("step_seconds_total", seconds, max(rest, 0).Seconds(), "on", "actors")

	send.histogram("first_token_seconds", "Time from a request to the first token of its answer.", s.FirstToken)
	send.histogram("between_tokens_seconds", "Time from one token of an answer to the next.", s.BetweenTokens)
	send.histogram("queue_seconds", "Time from a request to its first rows in a step.", s.Queue)

	const blocks = "Blocks of the KV cache by state."
	send.gauge("kv_blocks", blocks, float64(s.KV.Free), "state", "free")
	send.gauge("kv_blocks", blocks, float64(s.KV.Cached), "state", "cached")
	send.gauge("kv_blocks", blocks, float64(s.KV.Used), "state", "used")
	send.gauge("kv_host_blocks", "Cached blocks that wait in this machine's memory.", float64(s.KV.Host))
	const moved = "Cached blocks copied between a device and this machine's memory, by where they went."
	send.count("kv_moved_blocks_total", moved, float64(s.KV.Out), "to", "host")
	send.count("kv_moved_blocks_total", moved, float64(s.KV.Back), "to", "device")
	send.gauge("kv_disk_blocks", "Cached blocks that are in files.", float64(s.KV.Disk))
	const filed = "Cached blocks copied between memory and files, by where they went."
	send.count("kv_disk_moved_blocks_total", filed, float64(s.KV.Saved), "to", "disk")
	send.count("kv_disk_moved_blocks_total", filed, float64(s.KV.Read), "to", "device")
	const prefix = "Prompt tokens by whether the prefix cache had them."
	send.count("prefix_tokens_total", prefix, float64(s.KV.Hits), "found", "yes")
	send.count("prefix_tokens_total", prefix, float64(s.KV.Misses), "found", "no")
	send.count("kv_evictions_total", "Cached blocks given up for others.", float64(s.KV.Evictions))

	const uses = "Uses of experts that share slots, by whether they had one."
	send.count("expert_uses_total", uses, float64(s.Streamed.Found), "found", "yes")
	send.count("expert_uses_total", uses, float64(s.Streamed.Missed), "found", "no")
	send.count("expert_guesses_total", "Experts brought because they were likely.", float64(s.Streamed.Guesses))
	send.count("expert_guesses_right_total", "Those of them that were used.", float64(s.Streamed.Right))
	const streamed = "Bytes of weights that came to shared slots, by what they were for."
	send.count("streamed_bytes_total", streamed, float64(s.Streamed.StepBytes), "for", "step")
	send.count("streamed_bytes_total", streamed, float64(s.Streamed.AheadBytes), "for", "ahead")
	send.count("streamed_bytes_total", streamed, float64(s.Streamed.Guessed), "for", "guess")

	send.count("dead_letters_total", "Messages to actors that were gone.", float64(s.DeadLetters))
	send.count("unexpected_messages_total", "Messages that their receiver does not list.", float64(s.Unexpected))
	for _, a := range s.Actors {
		if strings.Contains(a.ID, "/sessions/") {
			continue // they come and go with the requests
		}
		send.count("actor_messages_total", "Messages handled.", float64(a.Handled), "actor", a.ID)
		send.count("actor_refused_total", "Messages that a full mailbox refused.", float64(a.Refused), "actor", a.ID)
		send.count("actor_restarts_total", "Restarts after a panic.", float64(a.Restarts), "actor", a.ID)
		send.gauge("actor_mailbox", "Messages waiting.", float64(a.Depth), "actor", a.ID)
		send.count("actor_busy_seconds_total", "Time spent handling messages.", a.Busy.Seconds(), "actor", a.ID)
		send.count("actor_wait_seconds_total", "Time that messages waited to be handled, summed.", a.Waited.Seconds(),
			"actor", a.ID)
	}
}

// collectDevice sends a device's time by cause: each second is counted in exactly one of them.
func collectDevice(send sender, device string, t stall.Time) {
	send.count("device_computing_seconds_total", "Time that the device computed.", t.Computing.Seconds(), "device", device)
	for c, d := range t.Idle {
		send.count("device_idle_seconds_total", "Time that the device had nothing to compute, by cause.", d.Seconds(),
			"device", device, "cause", trace.Cause(c).String())
	}
}

// sender makes metrics of values, with the labels of one model.
type sender struct {
	out    chan<- prometheus.Metric
	prefix string
	label  string   // label name under which the model's name is given
	model  string   // "": there is only one
	fixed  []string // names and values of labels that all have
}

func (s sender) gauge(name, help string, v float64, labels ...string) {
	s.send(prometheus.GaugeValue, name, help, v, labels)
}

func (s sender) count(name, help string, v float64, labels ...string) {
	s.send(prometheus.CounterValue, name, help, v, labels)
}

// histogram sends a histogram of durations, in seconds.
func (s sender) histogram(name, help string, h actors.Histogram) {
	buckets := make(map[float64]uint64, len(h.Up))
	for _, b := range h.Up {
		buckets[b.To.Seconds()] = b.Count
	}
	s.out <- prometheus.MustNewConstHistogram(s.describe(name, help, nil), h.Count, h.Sum.Seconds(), buckets)
}

func (s sender) send(kind prometheus.ValueType, name, help string, v float64, labels []string) {
	s.out <- prometheus.MustNewConstMetric(s.describe(name, help, labels), kind, v)
}

// describe takes label names and values in turn, and adds the model's label.
func (s sender) describe(name, help string, pairs []string) *prometheus.Desc {
	labels := prometheus.Labels{}
	for _, all := range [][]string{s.fixed, pairs} {
		for i := 0; i < len(all); i += 2 {
			labels[all[i]] = all[i+1]
		}
	}
	if s.model != "" {
		labels[s.label] = s.model
	}
	return prometheus.NewDesc(s.prefix+name, help, nil, labels)
}
