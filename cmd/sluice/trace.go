package main

import (
	"context"
	"fmt"
	"io"
	"net/url"

	"github.com/sluice-ai/sluice/internal/trace/chrome"
	"github.com/sluice-ai/sluice/internal/trace/stall"
	"github.com/sluice-ai/sluice/stages/report"
)

type traceCmd struct {
	Record recordCmd `cmd:"" default:"withargs" help:"Record what a running server does, for Perfetto (ui.perfetto.dev) or sluice trace stalls. This is what sluice trace does without another word."`
	Stalls stallsCmd `cmd:"" help:"Show what the device waited for in a trace."`
}

func (traceCmd) examples() [2]string { return recordCmd{}.examples() }

type recordCmd struct {
	Out     string `short:"o" required:"" placeholder:"FILE" help:"File to write."`
	Seconds int    `default:"5" placeholder:"N" help:"For how long, 1 to 300. Default: 5."`
	Model   string `name:"model" placeholder:"NAME" help:"The model to record, of several. Default: the first one that is loaded."`
	remoteFlags
	forceFlag
}

func (recordCmd) examples() [2]string {
	return [2]string{`sluice trace -o trace.json --seconds 10`, `sluice trace stalls trace.json`}
}

func (c *recordCmd) Run(e *env) error {
	if err := within("--seconds", c.Seconds, 1, 300); err != nil {
		return err
	}
	f, err := e.create(c.Out, c.Force)
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, cancel := e.interruptible(context.Background())
	defer cancel()
	path := fmt.Sprintf("/debug/trace?seconds=%d", c.Seconds)
	if c.Model != "" {
		path += "&model=" + url.QueryEscape(c.Model)
	}
	body, err := c.get(ctx, e, path)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(f, body)
	if ctx.Err() != nil {
		err = nil // what came so far can be read
	}
	if err != nil {
		err = fmt.Errorf("the server at %s ended the trace: %w", c.Addr, err)
	}
	return finish(f, c.Out, err)
}

type stallsCmd struct {
	File string `arg:"" help:"Trace, as sluice trace and --trace write it."`
	JSON bool   `name:"json" help:"Print JSON."`
}

func (stallsCmd) examples() [2]string {
	return [2]string{`sluice trace stalls trace.json`, `sluice trace stalls trace.json --json`}
}

func (c *stallsCmd) Run(e *env) error {
	f, err := e.openInput(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	spans, err := chrome.Read(f)
	if err != nil {
		return onFile(c.File, err)
	}
	devices := stall.Devices(spans)
	if len(devices) == 0 {
		return fmt.Errorf("%s: no device did anything in this trace: record for longer", c.File)
	}
	all := struct {
		Devices []report.Stalls `json:"devices"`
	}{}
	for i, track := range devices {
		a := stall.Of(track, spans)
		all.Devices = append(all.Devices, report.StallsOf(&a))
		if c.JSON {
			continue
		}
		if i > 0 {
			fmt.Fprintln(e.stdout)
		}
		if _, err := io.WriteString(e.stdout, report.StallText(&a, e.columns(e.stdout))); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
	if c.JSON {
		return printJSON(e.stdout, all)
	}
	return nil
}

// traceFlag is --trace, of commands that run a model.
type traceFlag struct {
	Trace string `placeholder:"FILE" help:"Write what happens inside to a file, for Perfetto (ui.perfetto.dev) or sluice trace stalls; the first GiB of it."`
}

// open begins the file, if there is to be one: what it returns is given to the engine. done completes it, after the
// engine was closed.
func (f *traceFlag) open(e *env, force bool, read ...string) (out io.Writer, done func() error, err error) {
	if f.Trace == "" {
		return nil, func() error { return nil }, nil
	}
	file, err := e.create(f.Trace, force, read...)
	if err != nil {
		return nil, nil, err
	}
	kept := &failed{w: file, path: f.Trace, tell: e.stderr}
	return kept, func() error {
		if !kept.begun { // no engine was started
			return file.Close()
		}
		return finish(file, f.Trace, kept.err)
	}, nil
}

// failed remembers why a file could not be written: who writes it is closed without anybody who listens. It is said at
// once as well: a server may go on for days.
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
	if f.err == nil && err != nil {
		f.err = onFile(f.path, err)
		fmt.Fprintf(f.tell, "sluice: %s: nothing more is written there\n", said(f.err))
	}
	return n, err
}
