// Package tracingtest is a collector of traces for tests, which reads OTLP's JSON by its own description of it.
package tracingtest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Told is a span that arrived.
type Told struct {
	Trace, ID, Parent, Name string
	Kind                    int
	Start, End              time.Time
	Attributes              map[string]any
	Failed                  string            // message of a span that failed
	Of                      map[string]string // its resource
}

// Collector takes spans at /v1/traces. Its answers may be refused by Refuse.
type Collector struct {
	*httptest.Server
	Refuse func() (status int) // nil, or 0: what comes is taken

	mu    sync.Mutex
	spans []Told
	from  []http.Header
}

// New starts a collector, which ends with the test.
func New(t *testing.T) *Collector {
	c := &Collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.Refuse != nil {
			if status := c.Refuse(); status != 0 {
				w.WriteHeader(status)
				return
			}
		}
		assert.Equal(t, "/v1/traces", r.URL.Path)
		assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
		c.from = append(c.from, r.Header)
		var d document
		decoder := json.NewDecoder(r.Body)
		decoder.DisallowUnknownFields()
		if assert.NoError(t, decoder.Decode(&d)) {
			c.spans = append(c.spans, d.spans(t)...)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// Spans are those that have arrived, in the order in which they ended.
func (c *Collector) Spans() []Told {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Told(nil), c.spans...)
}

// Headers are those of the requests that brought spans.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]http.Header(nil), c.from...)
}

type (
	document struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []pair }
			ScopeSpans []struct {
				Scope struct{ Name, Version string }
				Spans []arrived
			}
		}
	}
	arrived struct {
		TraceID, SpanID, ParentSpanID, TraceState, Name string
		StartTimeUnixNano, EndTimeUnixNano              string
		Kind, Flags                                     int
		Attributes                                      []pair
		Status                                          struct {
			Code    int
			Message string
		}
	}
	pair struct {
		Key   string
		Value value
	}
	value struct {
		StringValue *string
		IntValue    *string
		DoubleValue *float64
		ArrayValue  *struct{ Values []value }
	}
)

func (d *document) spans(t *testing.T) (all []Told) {
	for _, r := range d.ResourceSpans {
		of := map[string]string{}
		for _, p := range r.Resource.Attributes {
			if p.Value.StringValue != nil {
				of[p.Key] = *p.Value.StringValue
			}
		}
		for _, s := range r.ScopeSpans {
			for _, x := range s.Spans {
				y := Told{Trace: x.TraceID, ID: x.SpanID, Parent: x.ParentSpanID, Name: x.Name, Kind: x.Kind,
					Start: instant(t, x.StartTimeUnixNano), End: instant(t, x.EndTimeUnixNano), Attributes: map[string]any{}, Of: of}
				if x.Status.Code == 2 {
					y.Failed = x.Status.Message
				}
				for _, p := range x.Attributes {
					y.Attributes[p.Key] = p.Value.of(t)
				}
				all = append(all, y)
			}
		}
	}
	return all
}

func instant(t *testing.T, text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	assert.NoError(t, err)
	return time.Unix(0, n)
}

func (v *value) of(t *testing.T) any {
	switch {
	case v.StringValue != nil:
		return *v.StringValue
	case v.IntValue != nil:
		n, err := strconv.Atoi(*v.IntValue)
		assert.NoError(t, err)
		return n
	case v.DoubleValue != nil:
		return *v.DoubleValue
	case v.ArrayValue != nil:
		var all []any
		for i := range v.ArrayValue.Values {
			all = append(all, v.ArrayValue.Values[i].of(t))
		}
		return all
	}
	return nil
}
