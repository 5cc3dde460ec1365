package serve

import (
	"context"
	"time"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/server"
	"github.com/sluice-ai/sluice/server/tracing"
)

// tracingFlags tell a collector what requests took.
type tracingFlags struct {
	OTLP string `name:"otlp" placeholder:"URL" help:"Tell a collector of OpenTelemetry what requests took, such as http://127.0.0.1:4318: OTLP over HTTP, in JSON, without texts. Traces that clients name (traceparent) go on, at other members of the cluster as well."`
}

// otlpHeaders is the variable of the environment that has what a collector wants to know of who sends.
const otlpHeaders = "OTEL_EXPORTER_OTLP_HEADERS"

// tracer begins to trace, if it is asked for; nil: it is not. Of several servers, instance names this one.
func (f *tracingFlags) tracer(e *env.Env, o *server.Options, instance string) (*tracing.Tracer, error) {
	if f.OTLP == "" {
		return nil, nil //nolint:nilnil // most servers trace nothing
	}
	said, _ := e.Lookup(otlpHeaders)
	headers, err := tracing.ParseHeaders(said)
	if err != nil {
		return nil, env.Usagef("%s: %v", otlpHeaders, err)
	}
	t, err := tracing.New(tracing.Options{URL: f.OTLP, Headers: headers, Instance: instance, Version: o.Version,
		Log: o.Log})
	if err != nil {
		return nil, env.Usagef("--otlp: %v", err)
	}
	return t, nil
}

// lastSpans sends the last spans of a server that has ended, as far as a collector takes them soon.
func lastSpans(t *tracing.Tracer) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_ = t.Close(ctx) // the log has why spans were lost
}
