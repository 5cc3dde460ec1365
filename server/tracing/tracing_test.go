package tracing

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/server/tracing/tracingtest"
	"github.com/sluice-ai/sluice/stages/bill"
)

const (
	clients   = "0af7651916cd43dd8448eb211c80319c"
	clientsID = "b7ad6b7169203331"
)

func headersOf(pairs ...string) func(string) string {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h.Get
}

func begun(t *testing.T, c *tracingtest.Collector, o Options) (*Tracer, func() []tracingtest.Told) {
	t.Helper()
	o.URL = c.URL
	tracer, err := New(o)
	require.NoError(t, err)
	return tracer, func() []tracingtest.Told {
		require.NoError(t, tracer.Close(t.Context()))
		return c.Spans()
	}
}

// A request's span goes on with its client's trace, and has those of queue, prefill and decode below it, which end one
// after the other with the last token.
func TestSpans(t *testing.T) {
	c := tracingtest.New(t)
	tracer, done := begun(t, c, Options{Instance: "desk:1", Version: "1.2.3", Headers: map[string]string{"Api-Key": "s"}})
	at := time.Unix(1700000000, 0)
	ctx := tracer.Begin(t.Context(), headersOf("traceparent", "00-"+clients+"-"+clientsID+"-01"),
		Request{Method: "POST", Route: "/v1/completions", ID: "7", At: at})
	require.Equal(t, clients, Trace(ctx))
	b := bill.Begin(at)
	b.Until(at.Add(time.Second), bill.Queue)
	b.Until(at.Add(3*time.Second), bill.Compute)
	b.Decodes()
	b.Until(at.Add(7*time.Second), bill.Compute)
	Computed(ctx, &Answer{Model: "m", Prompt: 9, Cached: 4, Generated: 5, Queue: time.Second, Prefill: 2 * time.Second,
		Decode: 4 * time.Second, Finish: "stop", Spent: &b})
	End(ctx, 200, "")
	all := done()
	require.Len(t, all, 4)
	root := all[3]
	require.Equal(t, "POST /v1/completions", root.Name)
	require.Equal(t, []any{clients, clientsID, 2, "", at},
		[]any{root.Trace, root.Parent, root.Kind, root.Failed, root.Start})
	require.Equal(t, map[string]any{"http.request.method": "POST", "http.route": "/v1/completions",
		"sluice.request.id":    "7",
		"gen_ai.request.model": "m", "gen_ai.provider.name": "sluice", "http.response.status_code": 200}, root.Attributes)
	require.Equal(t, "desk:1", root.Of["service.instance.id"])
	require.Equal(t, "1.2.3", root.Of["service.version"])
	require.Equal(t, "sluice", root.Of["service.name"])
	require.Equal(t, "s", c.Headers()[0].Get("Api-Key"))
	for i, want := range []struct {
		name     string
		from, to int
		has      map[string]any
	}{
		{"queue", 0, 1, map[string]any{}},
		{"prefill", 1, 3, map[string]any{"gen_ai.usage.input_tokens": 9, "sluice.cached_tokens": 4,
			"sluice.ms.compute": 2000.0}},
		{"decode", 3, 7, map[string]any{"gen_ai.usage.output_tokens": 5, "sluice.ms.compute": 4000.0,
			"gen_ai.response.finish_reasons": []any{"stop"}}},
	} {
		x := all[i]
		require.Equal(t, []any{want.name, clients, root.ID}, []any{x.Name, x.Trace, x.Parent})
		require.Equal(t, at.Add(time.Duration(want.from)*time.Second), x.Start, want.name)
		require.Equal(t, at.Add(time.Duration(want.to)*time.Second), x.End, want.name)
		require.Equal(t, want.has, x.Attributes)
	}
}

// A client that names no trace, or a broken one, has one of its own; one that is not sampled is not told.
func TestTracesOfClients(t *testing.T) {
	for _, parent := range []string{"", "x", "00-" + clients + "-0000000000000000-01",
		"00-" + strings.Repeat("0", 32) + "-" + clientsID + "-01",
		"ff-" + clients + "-" + clientsID + "-01"} {
		c := tracingtest.New(t)
		tracer, done := begun(t, c, Options{})
		ctx := tracer.Begin(t.Context(), headersOf("traceparent", parent),
			Request{Method: "POST", Route: "/", At: time.Now()})
		require.NotContains(t, []string{"", clients}, Trace(ctx), parent)
		End(ctx, 503, "no room")
		all := done()
		require.Len(t, all, 1)
		require.Empty(t, all[0].Parent)
		require.Equal(t, "no room", all[0].Failed)
	}
	c := tracingtest.New(t)
	tracer, done := begun(t, c, Options{})
	End(tracer.Begin(t.Context(), headersOf("traceparent", "00-"+clients+"-"+clientsID+"-00"), Request{}), 200, "")
	require.Empty(t, done())
	var none *Tracer
	require.Empty(t, Trace(none.Begin(t.Context(), headersOf(), Request{})))
	require.NoError(t, none.Close(t.Context()))
}

// A member is told of the span that passes a request on, in place of what the client told; without a tracer, of that.
func TestPass(t *testing.T) {
	c := tracingtest.New(t)
	tracer, done := begun(t, c, Options{})
	ctx := tracer.Begin(t.Context(), headersOf("traceparent", "00-"+clients+"-"+clientsID+"-01", "tracestate", "a=b"),
		Request{Method: "POST", Route: "/", At: time.Now()})
	told := http.Header{"Traceparent": {"00-" + clients + "-" + clientsID + "-01"}, "Tracestate": {"x=y"}}
	Pass(ctx, "attic", told)(errors.New("it is gone"))
	End(ctx, 200, "")
	all := done()
	require.Len(t, all, 2)
	require.Equal(t, []any{"pass on", 3, all[1].ID, "it is gone", "attic"},
		[]any{all[0].Name, all[0].Kind, all[0].Parent, all[0].Failed, all[0].Attributes["sluice.member"]})
	require.Equal(t, http.Header{"Traceparent": {"00-" + clients + "-" + all[0].ID + "-01"}, "Tracestate": {"a=b"}}, told)
	same := http.Header{"Traceparent": {"x"}}
	Pass(t.Context(), "attic", same)(nil)
	require.Equal(t, http.Header{"Traceparent": {"x"}}, same)
}

// What a collector takes later is sent again; what it does not take is lost, which is said once until it takes spans.
func TestLostSpans(t *testing.T) {
	before := goleak.IgnoreCurrent()
	c := tracingtest.New(t)
	answers := []int{503, 0, 400, 404, 0}
	c.Refuse = func() (status int) {
		status, answers = answers[0], answers[1:]
		return status
	}
	log := &bytes.Buffer{}
	tracer, done := begun(t, c, Options{Log: zerolog.New(log)})
	for range 4 {
		End(tracer.Begin(t.Context(), headersOf(), Request{Method: "POST", At: time.Now()}), 200, "")
		require.NoError(t, tracer.provider.ForceFlush(t.Context()))
	}
	require.Len(t, done(), 2)
	require.Empty(t, answers)
	require.Equal(t, 1, strings.Count(log.String(), "takes no spans"), log)
	require.Contains(t, log.String(), `it answers 400 Bad Request: \"\"`)
	require.Contains(t, log.String(), `"lost":2`)
	c.Close()
	goleak.VerifyNone(t, before)
}

// A collector that does not answer keeps nobody longer than a batch may take.
func TestGivesUp(t *testing.T) {
	c := tracingtest.New(t)
	c.Refuse = func() int { return 503 }
	tracer, done := begun(t, c, Options{})
	End(tracer.Begin(t.Context(), headersOf(), Request{At: time.Now()}), 200, "")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, tracer.provider.ForceFlush(ctx), context.DeadlineExceeded)
	require.Empty(t, done())
}

func TestURLs(t *testing.T) {
	for text, want := range map[string]string{
		"http://h:4318":     "http://h:4318/v1/traces",
		"https://h/":        "https://h/v1/traces",
		"https://h/a/otlp":  "https://h/a/otlp",
		"h:4318":            "",
		"grpc://h":          "",
		"http://":           "",
		"http://u:secret@h": "",
		"http://a b":        "",
	} {
		e, err := newExporter(text, nil, zerolog.Nop())
		if want != "" {
			require.NoError(t, err)
			require.Equal(t, want, e.url)
			continue
		}
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestParseHeaders(t *testing.T) {
	got, err := ParseHeaders(" a=b ,Authorization=Basic%20x=,, ")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b", "Authorization": "Basic x="}, got)
	for _, text := range []string{"secret", "=secret", "a=b,secret", "a=%zzsecret", "a=%0asecret", "ä=secret"} {
		_, err := ParseHeaders(text)
		require.ErrorContains(t, err, "want NAME=VALUE", text)
		require.NotContains(t, err.Error(), "secret")
	}
}
