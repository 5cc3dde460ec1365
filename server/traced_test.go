package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/server/tracing"
	"github.com/sluice-ai/sluice/server/tracing/tracingtest"
)

// TestTraced: what a client's trace has of a request is here a span with those of its answer, and across members one
// trace with a span of each. Reports of members, and what only reads, are not told.
func TestTraced(t *testing.T) {
	const clients = "0af7651916cd43dd8448eb211c80319c"
	c, w := tracingtest.New(t), newTown(t)
	all, tracers := map[string]*joined{}, []*tracing.Tracer{}
	for _, name := range []string{"attic", "desk"} {
		tracer, err := tracing.New(tracing.Options{URL: c.URL, Instance: name})
		require.NoError(t, err)
		tracers = append(tracers, tracer)
		all[name] = w.join(t, name, Options{Tracer: tracer})
	}
	all["attic"].sees(t, "desk")
	all["desk"].sees(t, "attic")
	ask := func(of *joined, stream string) (member string) {
		q, err := http.NewRequest(http.MethodPost, of.url+"/v1/completions", strings.NewReader(
			`{"model":"m","prompt":"`+strings.Repeat("secret ", 200)+`","max_tokens":3,"stream":`+stream+`}`))
		require.NoError(t, err)
		q.Header.Set("Traceparent", "00-"+clients+"-b7ad6b7169203331-01")
		got, err := of.http.Do(q)
		require.NoError(t, err)
		status, said := read(t, got)
		require.Equal(t, 200, status, said)
		return got.Header.Get(memberHeader)
	}
	var members []string
	for _, of := range []*joined{all["attic"], all["desk"]} {
		for _, stream := range []string{"false", "true"} {
			members = append(members, ask(of, stream))
		}
		got, err := of.http.Get(of.url + "/v1/models")
		require.NoError(t, err)
		read(t, got)
	}
	for _, tracer := range tracers {
		require.NoError(t, tracer.Close(t.Context()))
	}
	spans, byID := c.Spans(), map[string]tracingtest.Told{}
	for _, s := range spans {
		require.Equal(t, clients, s.Trace)
		byID[s.ID] = s
	}
	passed, computed := 0, 0
	for _, s := range spans {
		above := byID[s.Parent]
		switch s.Name {
		case "pass on":
			passed++
			require.Equal(t, "POST /v1/completions", above.Name)
		case "decode":
			computed++
			require.Equal(t, "m", above.Attributes["gen_ai.request.model"])
			require.Equal(t, 3, s.Attributes["gen_ai.usage.output_tokens"])
			if at := byID[above.Parent]; at.Name == "pass on" {
				require.NotEqual(t, at.Of, above.Of)
				require.Equal(t, at.Attributes["sluice.member"], above.Of["service.instance.id"])
			}
		}
		require.NotContains(t, s.Attributes, "secret")
	}
	want := 0
	for _, m := range members {
		if m != "" {
			want++
		}
	}
	require.Equal(t, want, passed, members)
	require.Positive(t, passed)
	require.Equal(t, len(members), computed)
	require.Contains(t, all["desk"].log.String(), clients)
}
