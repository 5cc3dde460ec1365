package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
)

// sending is how long a batch may take, with what is tried again.
const sending = 10 * time.Second

// again is how long the second try waits; each further one waits twice as long.
const again = 500 * time.Millisecond

// exporter sends spans to a collector. What does not arrive is lost, and said once until spans arrive again.
type exporter struct {
	url     string
	headers map[string]string
	log     zerolog.Logger
	client  http.Client
	lost    int // spans in a row
}

func newExporter(to string, headers map[string]string, log zerolog.Logger) (*exporter, error) {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("it is no URL of a collector: want such as http://127.0.0.1:4318")
	}
	if u.User != nil {
		return nil, fmt.Errorf("it names who asks: give what the collector wants to know in OTEL_EXPORTER_OTLP_HEADERS")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	e := &exporter{url: u.String(), headers: headers, log: log}
	e.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return e, nil
}

// ParseHeaders reads headers as OTEL_EXPORTER_OTLP_HEADERS has them: name=value,name=value, with values as in URLs.
func ParseHeaders(text string) (map[string]string, error) {
	all := map[string]string{}
	for i, pair := range strings.Split(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		name = strings.TrimSpace(name)
		if !found || err != nil || name == "" || strings.ContainsFunc(name+value, unsent) {
			return nil, fmt.Errorf("header %d is none: want NAME=VALUE, several with commas between", i+1) // values are secrets
		}
		all[name] = value
	}
	return all, nil
}

// unsent says what no header may have.
func unsent(r rune) bool { return r < ' ' || r > '~' }

// ExportSpans implements trace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	body, err := json.Marshal(documentOf(spans))
	if err == nil {
		err = e.send(ctx, body)
	}
	switch {
	case err != nil && e.lost == 0:
		e.log.Warn().Err(err).Int("spans", len(spans)).
			Msg("the collector of traces takes no spans: they are lost until it does")
	case err == nil && e.lost > 0:
		e.log.Warn().Int("lost", e.lost).Msg("the collector of traces takes spans again")
		e.lost = 0
	}
	if err != nil {
		e.lost += len(spans)
	}
	return nil // it was said
}

// Shutdown implements trace.SpanExporter.
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

// send sends a document, again where that may help.
func (e *exporter) send(ctx context.Context, body []byte) (err error) {
	for wait := again; ; wait *= 2 {
		var later bool
		if later, err = e.post(ctx, body); err == nil || !later {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// post sends a document once; later says that it may be taken later.
func (e *exporter) post(ctx context.Context, body []byte) (later bool, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	q.Header.Set("Content-Type", "application/json")
	for name, value := range e.headers {
		q.Header.Set(name, value)
	}
	got, err := e.client.Do(q)
	if err != nil {
		return true, err
	}
	defer got.Body.Close()
	if got.StatusCode/100 == 2 {
		_, err = io.Copy(io.Discard, io.LimitReader(got.Body, 64<<10)) // so that the connection serves again
		return true, err
	}
	said, _ := io.ReadAll(io.LimitReader(got.Body, 200)) // without words, the status has to do
	switch got.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		later = true
	}
	return later, fmt.Errorf("it answers %s: %q", got.Status, said)
}

// The document of ExportTraceServiceRequest in JSON, as OTLP maps it: ids are hexadecimal, numbers of 64 bits texts.
type (
	document struct {
		Resources []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource struct {
			Attributes []keyValue `json:"attributes"`
		} `json:"resource"`
		Scopes []scopeSpans `json:"scopeSpans"`
	}
	scopeSpans struct {
		Scope struct {
			Name    string `json:"name"`
			Version string `json:"version,omitempty"`
		} `json:"scope"`
		Spans []sentSpan `json:"spans"`
	}
	sentSpan struct {
		Trace      string     `json:"traceId"`
		ID         string     `json:"spanId"`
		Parent     string     `json:"parentSpanId,omitempty"`
		State      string     `json:"traceState,omitempty"`
		Flags      uint32     `json:"flags"`
		Name       string     `json:"name"`
		Kind       int        `json:"kind"`
		Start      string     `json:"startTimeUnixNano"`
		End        string     `json:"endTimeUnixNano"`
		Attributes []keyValue `json:"attributes,omitempty"`
		Status     *status    `json:"status,omitempty"`
	}
	status struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}
	keyValue struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// statusError is the code of spans that failed.
const statusError = 2

// remote flags a parent that is known to be of another process, or not: bits 8 and 9 of a span's flags.
const (
	parentKnown  = 1 << 8
	parentRemote = 1 << 9
)

// documentOf is the document of spans, all of one tracer.
func documentOf(spans []trace.ReadOnlySpan) (d document) {
	var r resourceSpans
	var s scopeSpans
	for i, x := range spans {
		if i == 0 {
			r.Resource.Attributes = keyValues(x.Resource().Attributes())
			s.Scope.Name, s.Scope.Version = x.InstrumentationScope().Name, x.InstrumentationScope().Version
		}
		s.Spans = append(s.Spans, spanOf(x))
	}
	r.Scopes = []scopeSpans{s}
	d.Resources = []resourceSpans{r}
	return d
}

func spanOf(x trace.ReadOnlySpan) sentSpan {
	of, parent := x.SpanContext(), x.Parent()
	s := sentSpan{Trace: of.TraceID().String(), ID: of.SpanID().String(), State: of.TraceState().String(),
		Flags: uint32(of.TraceFlags()) | parentKnown, Name: x.Name(), Kind: int(x.SpanKind()),
		Start: nano(x.StartTime()), End: nano(x.EndTime()), Attributes: keyValues(x.Attributes())}
	if parent.HasSpanID() {
		s.Parent = parent.SpanID().String()
	}
	if parent.IsRemote() {
		s.Flags |= parentRemote
	}
	if x.Status().Code == codes.Error {
		s.Status = &status{statusError, x.Status().Description}
	}
	return s
}

func nano(at time.Time) string { return strconv.FormatInt(at.UnixNano(), 10) }

func keyValues(all []attribute.KeyValue) (out []keyValue) {
	for _, a := range all {
		var v map[string]any
		switch a.Value.Type() {
		case attribute.INT64:
			v = map[string]any{"intValue": strconv.FormatInt(a.Value.AsInt64(), 10)}
		case attribute.FLOAT64:
			v = map[string]any{"doubleValue": a.Value.AsFloat64()}
		case attribute.STRINGSLICE:
			list := []map[string]any{}
			for _, text := range a.Value.AsStringSlice() {
				list = append(list, map[string]any{"stringValue": text})
			}
			v = map[string]any{"arrayValue": map[string]any{"values": list}}
		default:
			v = map[string]any{"stringValue": a.Value.Emit()}
		}
		out = append(out, keyValue{string(a.Key), v})
	}
	return out
}
