package actors

import (
	"github.com/sluice-ai/sluice/internal/trace"
)

// The methods Trace implement run.Traced: the kind of a message's span, and its step.

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
