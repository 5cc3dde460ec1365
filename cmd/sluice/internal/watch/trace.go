package watch

import (
	"context"
	"fmt"
	"io"
	"net/url"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/report"
	"github.com/sluice-ai/sluice/internal/trace/chrome"
	"github.com/sluice-ai/sluice/internal/trace/stall"
)

type Trace struct {
	Record record `cmd:"" default:"withargs" help:"Record what a running server does, for Perfetto (ui.perfetto.dev) or sluice trace stalls. This is what sluice trace does without another word."`
	Stalls stalls `cmd:"" help:"Show what the device waited for in a trace."`
}

func (Trace) Examples() [2]string { return record{}.Examples() }

type record struct {
	Out     string `short:"o" required:"" placeholder:"FILE" help:"File to write."`
	Seconds int    `default:"5" placeholder:"N" help:"For how long, 1 to 300. Default: 5."`
	Model   string `name:"model" placeholder:"NAME" help:"The model to record, of several. Default: the first one that is loaded."`
	remoteFlags
	env.ForceFlag
}

func (record) Examples() [2]string {
	return [2]string{`sluice trace -o trace.json --seconds 10`, `sluice trace stalls trace.json`}
}

func (c *record) Run(e *env.Env) error {
	if err := env.Within("--seconds", c.Seconds, 1, 300); err != nil {
		return err
	}
	f, err := e.Create(c.Out, c.Force)
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, cancel := e.Interruptible(context.Background())
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
	return env.Finish(f, c.Out, err)
}

type stalls struct {
	File string `arg:"" help:"Trace, as sluice trace and --trace write it."`
	JSON bool   `name:"json" help:"Print JSON."`
}

func (stalls) Examples() [2]string {
	return [2]string{`sluice trace stalls trace.json`, `sluice trace stalls trace.json --json`}
}

func (c *stalls) Run(e *env.Env) error {
	f, err := e.OpenInput(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	spans, err := chrome.Read(f)
	if err != nil {
		return env.OnFile(c.File, err)
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
			fmt.Fprintln(e.Stdout)
		}
		if _, err := io.WriteString(e.Stdout, report.StallText(&a, e.Columns(e.Stdout))); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
	if c.JSON {
		return env.PrintJSON(e.Stdout, all)
	}
	return nil
}
