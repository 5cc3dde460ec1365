package tiers

import "github.com/sluice-ai/sluice/internal/trace"

// The methods Trace implement run.Traced: all these messages are about weights.

func (*fetch) Trace() (trace.Kind, trace.Of)   { return trace.Weights, trace.Nothing() }
func (*arrived) Trace() (trace.Kind, trace.Of) { return trace.Weights, trace.Nothing() }
func (*Want) Trace() (trace.Kind, trace.Of)    { return trace.Weights, trace.Nothing() }
func (*Landed) Trace() (trace.Kind, trace.Of)  { return trace.Weights, trace.Nothing() }
func (*again) Trace() (trace.Kind, trace.Of)   { return trace.Weights, trace.Nothing() }
func (*lease) Trace() (trace.Kind, trace.Of)   { return trace.Weights, trace.Nothing() }
func (*granted) Trace() (trace.Kind, trace.Of) { return trace.Weights, trace.Nothing() }
func (*release) Trace() (trace.Kind, trace.Of) { return trace.Weights, trace.Nothing() }
func (*read) Trace() (trace.Kind, trace.Of)    { return trace.Weights, trace.Nothing() }
func (*pack) Trace() (trace.Kind, trace.Of)    { return trace.Weights, trace.Nothing() }
