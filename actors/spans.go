package actors

import (
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/trace"
)

// What the spans of messages are called, by what they are about.

func (*open) Trace() (trace.Kind, uint64)           { return trace.Request, 0 }
func (*submit) Trace() (trace.Kind, uint64)         { return trace.Request, 0 }
func (*cancel) Trace() (trace.Kind, uint64)         { return trace.Request, 0 }
func (*wake) Trace() (trace.Kind, uint64)           { return trace.Request, 0 }
func (*hangUp) Trace() (trace.Kind, uint64)         { return trace.Request, 0 }
func (*seqFailed) Trace() (trace.Kind, uint64)      { return trace.Request, 0 }
func (*kvRequest) Trace() (trace.Kind, uint64)      { return trace.Blocks, 0 }
func (m *step) Trace() (trace.Kind, uint64)         { return trace.Step, m.number }
func (m *computed) Trace() (trace.Kind, uint64)     { return trace.Step, m.step.number }
func (m *tokenMessage) Trace() (trace.Kind, uint64) { return trace.Token, m.step }
func (*fetch) Trace() (trace.Kind, uint64)          { return trace.Weights, 0 }
func (*arrived) Trace() (trace.Kind, uint64)        { return trace.Weights, 0 }
func (*want) Trace() (trace.Kind, uint64)           { return trace.Weights, 0 }
func (*landed) Trace() (trace.Kind, uint64)         { return trace.Weights, 0 }
func (*again) Trace() (trace.Kind, uint64)          { return trace.Weights, 0 }
func (m *told) Trace() (trace.Kind, uint64)         { return trace.Step, m.step.number }
func (*lease) Trace() (trace.Kind, uint64)          { return trace.Weights, 0 }
func (*granted) Trace() (trace.Kind, uint64)        { return trace.Weights, 0 }
func (*release) Trace() (trace.Kind, uint64)        { return trace.Weights, 0 }
func (*read) Trace() (trace.Kind, uint64)           { return trace.Weights, 0 }
func (*pack) Trace() (trace.Kind, uint64)           { return trace.Weights, 0 }

// segmentKinds is what the span of a segment is called.
var segmentKinds = [ir.SegmentKinds]trace.Kind{
	ir.SegEmbed: trace.Embed, ir.SegMix: trace.Mix, ir.SegFFN: trace.FFN, ir.SegRoute: trace.Route,
	ir.SegExperts: trace.Experts, ir.SegHead: trace.Head, ir.SegPool: trace.Pool,
}
