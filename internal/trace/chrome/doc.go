// Package chrome writes spans in the trace event format, which Perfetto (ui.perfetto.dev) and Chrome's tracing page
// show, and reads them back. Each track is a thread; a span is a complete event, an event of phase X. What spans mean
// is internal/trace's business, when they are written the caller's.
package chrome
