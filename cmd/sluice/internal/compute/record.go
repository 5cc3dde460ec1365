package compute

import (
	"errors"
	"fmt"
	"io"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/safefile"
)

// RecordFlags ask for a token trace.
type RecordFlags struct {
	Record        string `placeholder:"FILE" help:"Write a token trace, for sluice replay and sluice why: prompts, tokens, steps, experts."`
	RecordIDsOnly bool   `name:"record-ids-only" help:"Leave the texts of prompts out of it; their token ids stay."`
}

// Tape is the file of a token trace. It has its name as soon as the trace has begun, since a trace that ends anywhere
// can be read: a process that is killed leaves what it recorded. The first error is reported at the end, so that it
// does not stop an answer.
type Tape struct {
	taped
	to *actors.Tape
}

// taped is what writes it.
type taped struct {
	failed
	file  *safefile.File
	named bool
}

// Append implements actors.TapeSink.
func (t *taped) Append(records []byte, head func() []byte) {
	if t.err != nil {
		return
	}
	if !t.begun {
		records = append(head(), records...)
	}
	if _, err := t.Write(records); err == nil && !t.named {
		t.named = true
		_ = t.keep(t.file.Commit())
	}
}

// Lost implements actors.TapeSink: a trace of which something is missing ends there.
func (t *taped) Lost(why error) { _ = t.keep(why) }

// Close implements actors.TapeSink.
func (t *taped) Close() {}

// Begin creates the file, if there is to be one.
func (f *RecordFlags) Begin(e *env.Env, force bool, read ...string) (*Tape, error) {
	if f.Record == "" {
		if f.RecordIDsOnly {
			return nil, env.Usagef("--record-ids-only leaves texts out of what --record writes: add --record FILE")
		}
		return nil, nil
	}
	file, err := e.Create(f.Record, force, read...)
	if err != nil {
		return nil, err
	}
	t := &Tape{taped: taped{failed: failed{w: file, path: f.Record, tell: e.Stderr}, file: file}}
	t.to = actors.NewTape(&t.taped, !f.RecordIDsOnly)
	return t, nil
}

// Attach has a model record on the tape.
func (t *Tape) Attach(m *actors.Model) {
	if t != nil {
		m.Tapes = append(m.Tapes, t.to)
	}
}

// Close completes the file. It is called after the engine is closed.
func (t *Tape) Close() error {
	if t == nil {
		return nil
	}
	t.to.Close()
	if !t.begun { // no engine was started
		return t.file.Close()
	}
	if !t.named {
		return env.Finish(t.file, t.path, t.err)
	}
	if !t.file.Stream {
		_ = t.keep(t.file.Sync())
	}
	return errors.Join(t.err, t.file.Close())
}

// TraceFlag is --trace, of commands that run a model.
type TraceFlag struct {
	Trace string `placeholder:"FILE" help:"Write what happens inside to a file, for Perfetto (ui.perfetto.dev) or sluice trace stalls; the first GiB of it."`
}

// Open creates the file, if there is to be one. out is given to the engine; done completes the file after the engine is
// closed.
func (f *TraceFlag) Open(e *env.Env, force bool, read ...string) (out io.Writer, done func() error, err error) {
	if f.Trace == "" {
		return nil, func() error { return nil }, nil
	}
	file, err := e.Create(f.Trace, force, read...)
	if err != nil {
		return nil, nil, err
	}
	kept := &failed{w: file, path: f.Trace, tell: e.Stderr}
	return kept, func() error {
		if !kept.begun { // no engine was started
			return file.Close()
		}
		return env.Finish(file, f.Trace, kept.err)
	}, nil
}

// failed is a writer that keeps its first error, since the engine writes to it without reporting errors. The error is
// also printed at once: a server may go on for days.
type failed struct {
	w     io.Writer
	path  string
	tell  io.Writer
	err   error
	begun bool
}

func (f *failed) Write(p []byte) (int, error) {
	f.begun = true
	n, err := f.w.Write(p)
	return n, f.keep(err)
}

// keep keeps and returns an error, unless it is nil.
func (f *failed) keep(err error) error {
	if f.err == nil && err != nil {
		f.err = env.OnFile(f.path, err)
		fmt.Fprintf(f.tell, "sluice: %s: nothing more is written there\n", env.Visible(f.err.Error()))
	}
	return err
}
