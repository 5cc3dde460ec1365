package library

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
)

type Show struct {
	Name string `arg:"" placeholder:"NAME" help:"Model in the store."`
	JSON bool   `name:"json" help:"Print JSON."`
}

func (Show) Examples() [2]string {
	return [2]string{`sluice show OWNER/NAME-GGUF`, `sluice show --json OWNER/NAME-GGUF:Q8_0`}
}

func (c *Show) Run(e *env.Env) error {
	name, err := parseModelName(c.Name)
	if err != nil {
		return err
	}
	s, err := models.OpenStore(e)
	if err != nil {
		return err
	}
	m, err := s.Find(name)
	if err != nil {
		return err
	}
	r := record(s, m, true)
	if c.JSON {
		return env.PrintJSON(e.Stdout, r)
	}
	t := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	row := func(what, text string) { fmt.Fprintf(t, "%s\t%s\n", what, env.Printable(text)) }
	row("name", r.Name)
	row("size", env.BinarySize(r.Size))
	row("from", r.Source)
	row("revision", r.Revision)
	row("pulled", r.Pulled.Format(time.RFC3339))
	row("path", r.Path)
	if r.Note != "" {
		row("but", r.Note)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(e.Stdout)
	fmt.Fprintln(t, "file\tsize\trole\tdigest")
	for _, f := range r.Files {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", env.Printable(f.Name), env.BinarySize(f.Size), f.Role, f.Digest)
	}
	return t.Flush()
}
