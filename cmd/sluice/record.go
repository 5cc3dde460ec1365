package main

import (
	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/safefile"
)

// recordFlags ask for a token trace.
type recordFlags struct {
	Record        string `placeholder:"FILE" help:"Write a token trace, for sluice replay: prompts, tokens, steps, experts."`
	RecordIDsOnly bool   `name:"record-ids-only" help:"Leave the texts of prompts out of it; their token ids stay."`
}

// tape is the file of a trace. Its first error is told at the end, and not in the way of an answer.
type tape struct {
	failed
	file *safefile.File
}

// begin makes the file, or none.
func (f *recordFlags) begin(e *env, force bool, read ...string) (*tape, error) {
	if f.Record == "" {
		if f.RecordIDsOnly {
			return nil, usagef("--record-ids-only leaves texts out of what --record writes: add --record FILE")
		}
		return nil, nil
	}
	file, err := e.create(f.Record, force, read...)
	if err != nil {
		return nil, err
	}
	return &tape{failed{w: file, path: f.Record, tell: e.stderr}, file}, nil
}

// record has a model write its trace.
func (f *recordFlags) record(m *actors.Model, t *tape) {
	if t != nil {
		m.Record, m.RecordIDsOnly = t, f.RecordIDsOnly
	}
}

// close is called when the engine is closed: then the file is whole.
func (t *tape) close() error {
	if t == nil {
		return nil
	}
	if !t.begun { // no engine was started
		return t.file.Close()
	}
	return finish(t.file, t.path, t.err)
}
