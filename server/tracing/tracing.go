package tracing

import (
	"context"
	"net/http"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"github.com/sluice-ai/sluice/stages/bill"
)

// Options say where spans go and whose they are.
type Options struct {
	URL      string            // of a collector: with no path, /v1/traces is asked
	Headers  map[string]string // of requests to it
	Instance string            // which one of several; "": it is alone
	Version  string            // of the program
	Log      zerolog.Logger
}

// Tracer makes spans. A nil Tracer makes none.
type Tracer struct {
	provider *trace.TracerProvider
	tracer   api.Tracer
}

// scope is who makes the spans.
const scope = "github.com/sluice-ai/sluice"

// across carries a trace from one process to the next.
var across propagation.TraceContext

// New begins to trace. The environment may change names and samples as OpenTelemetry has it: OTEL_SERVICE_NAME,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_BSP_*.
func New(o Options) (*Tracer, error) {
	to, err := newExporter(o.URL, o.Headers, o.Log)
	if err != nil {
		return nil, err
	}
	own := []attribute.KeyValue{attribute.String("service.name", "sluice"), attribute.String("service.version", o.Version)}
	if o.Instance != "" {
		own = append(own, attribute.String("service.instance.id", o.Instance))
	}
	of, err := resource.New(context.Background(), resource.WithAttributes(own...), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	p := trace.NewTracerProvider(trace.WithResource(of), trace.WithBatcher(to, trace.WithExportTimeout(sending)))
	return &Tracer{p, p.Tracer(scope, api.WithInstrumentationVersion(o.Version))}, nil
}

// Close sends what was not sent yet, as long as the context lasts.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Request is what a span tells of a request.
type Request struct {
	Method, Route, ID string
	At                time.Time
}

// Begin begins the span of a request, which goes on with the trace that header names; see Trace.
func (t *Tracer) Begin(ctx context.Context, header func(name string) string, r Request) context.Context {
	if t == nil {
		return ctx
	}
	ctx = across.Extract(ctx, reading(header))
	ctx, _ = t.tracer.Start(ctx, r.Method+" "+r.Route, api.WithSpanKind(api.SpanKindServer), api.WithTimestamp(r.At),
		api.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("http.route", r.Route),
			attribute.String("sluice.request.id", r.ID)))
	return ctx
}

// Trace is the id of the trace that a context is in; "": of none.
func Trace(ctx context.Context) string {
	if of := api.SpanContextFromContext(ctx); of.HasTraceID() {
		return of.TraceID().String()
	}
	return ""
}

// End ends the span of a request. failed is what its client was told, if it was refused.
func End(ctx context.Context, status int, failed string) {
	s := api.SpanFromContext(ctx)
	s.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError || status < 0 {
		s.SetStatus(codes.Error, failed)
	}
	s.End()
}

// Pass begins the span of passing a request on to a member, which header tells of it. end ends it; err is why the
// member did not answer.
func Pass(ctx context.Context, member string, header http.Header) (end func(err error)) {
	of := api.SpanFromContext(ctx)
	if !of.SpanContext().IsValid() {
		return func(error) {} // a client's trace, if it names one, goes on at the member
	}
	ctx, s := of.TracerProvider().Tracer(scope).Start(ctx, "pass on",
		api.WithSpanKind(api.SpanKindClient), api.WithAttributes(attribute.String("sluice.member", member)))
	header.Del("tracestate")
	across.Inject(ctx, propagation.HeaderCarrier(header))
	return func(err error) {
		if err != nil {
			s.SetStatus(codes.Error, err.Error())
		}
		s.End()
	}
}

// Answer is what spans tell of one answer to a request that this process computed.
type Answer struct {
	Model                     string
	Prompt, Cached, Generated int // tokens
	Queue, Prefill, Decode    time.Duration
	Finish                    string
	Spent                     *bill.Bill
}

// Computed tells of an answer below the request's span: queueing, prefill and decode end one after the other, decode
// with the last token.
func Computed(ctx context.Context, a *Answer) {
	of := api.SpanFromContext(ctx)
	if !of.IsRecording() || !a.Spent.Begun() {
		return
	}
	of.SetAttributes(attribute.String("gen_ai.request.model", a.Model), attribute.String("gen_ai.provider.name", "sluice"))
	tracer, end := of.TracerProvider().Tracer(scope), a.Spent.Began().Add(a.Spent.Sum())
	first := end.Add(-a.Decode)
	began := first.Add(-a.Prefill)
	child := func(name string, from, to time.Time, more ...attribute.KeyValue) {
		_, s := tracer.Start(ctx, name, api.WithTimestamp(from), api.WithAttributes(more...))
		s.End(api.WithTimestamp(to))
	}
	child("queue", began.Add(-a.Queue), began)
	child("prefill", began, first, append(causes(a.Spent, (*bill.Bill).Spent),
		attribute.Int("gen_ai.usage.input_tokens", a.Prompt), attribute.Int("sluice.cached_tokens", a.Cached))...)
	child("decode", first, end, append(causes(a.Spent, (*bill.Bill).Decoding),
		attribute.Int("gen_ai.usage.output_tokens", a.Generated),
		attribute.StringSlice("gen_ai.response.finish_reasons", []string{a.Finish}))...)
}

// causes are what the time of a phase went to, in milliseconds, by those causes that are counted by phase.
func causes(b *bill.Bill, of func(*bill.Bill, bill.Cause) time.Duration) (all []attribute.KeyValue) {
	for c := bill.Compute; c < bill.Causes; c++ {
		if d := of(b, c); d > 0 {
			all = append(all, attribute.Float64("sluice.ms."+c.String(), float64(d)/float64(time.Millisecond)))
		}
	}
	return all
}

// reading is a header that is only read.
type reading func(name string) string

// Get implements propagation.TextMapCarrier.
func (r reading) Get(name string) string { return r(name) }

// Set implements propagation.TextMapCarrier.
func (reading) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (reading) Keys() []string { return nil }
