package actors

import (
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/trace"
)

// What the spans of messages are called, by what they are about.

func (*open) Trace() (trace.Kind, trace.Of)           { return trace.Request, trace.Nothing() }
func (*submit) Trace() (trace.Kind, trace.Of)         { return trace.Request, trace.Nothing() }
func (*cancel) Trace() (trace.Kind, trace.Of)         { return trace.Request, trace.Nothing() }
func (*wake) Trace() (trace.Kind, trace.Of)           { return trace.Request, trace.Nothing() }
func (*hangUp) Trace() (trace.Kind, trace.Of)         { return trace.Request, trace.Nothing() }
func (*seqFailed) Trace() (trace.Kind, trace.Of)      { return trace.Request, trace.Nothing() }
func (*kvRequest) Trace() (trace.Kind, trace.Of)      { return trace.Blocks, trace.Nothing() }
func (m *step) Trace() (trace.Kind, trace.Of)         { return trace.Step, trace.OfStep(m.number) }
func (m *computed) Trace() (trace.Kind, trace.Of)     { return trace.Step, trace.OfStep(m.step.number) }
func (m *tokenMessage) Trace() (trace.Kind, trace.Of) { return trace.Token, trace.OfStep(m.step) }
func (m *told) Trace() (trace.Kind, trace.Of)         { return trace.Step, trace.OfStep(m.step.number) }

// segmentKinds is what the span of a segment is called.
var segmentKinds = [ir.SegmentKinds]trace.Kind{
	ir.SegEmbed: trace.Embed, ir.SegMix: trace.Mix, ir.SegFFN: trace.FFN, ir.SegRoute: trace.Route,
	ir.SegExperts: trace.Experts, ir.SegHead: trace.Head, ir.SegPool: trace.Pool,
}
