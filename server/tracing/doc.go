// Package tracing tells a collector of OpenTelemetry what requests took: a span for each, spans of its answer's
// queueing, prefill and decode, and one for each member of the cluster that it is passed on to. Traces of clients go on
// by W3C's Trace Context (traceparent, tracestate). No span has a text of a prompt, an answer or a key.
//
// Spans are made by OpenTelemetry's SDK, which samples and batches them, and sent as OTLP over HTTP in JSON.
package tracing
