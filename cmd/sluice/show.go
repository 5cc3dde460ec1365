package main

import (
	"fmt"
	"text/tabwriter"
	"time"
)

type showCmd struct {
	Name string `arg:"" placeholder:"NAME" help:"Model in the store."`
	JSON bool   `name:"json" help:"Print JSON."`
}

func (showCmd) Examples() [2]string {
	return [2]string{`sluice show OWNER/NAME-GGUF`, `sluice show --json OWNER/NAME-GGUF:Q8_0`}
}

func (c *showCmd) Run(e *env) error {
	name, err := parseModelName(c.Name)
	if err != nil {
		return err
	}
	s, err := openStore(e)
	if err != nil {
		return err
	}
	m, err := s.Find(name)
	if err != nil {
		return err
	}
	r := record(s, m, true)
	if c.JSON {
		return printJSON(e.stdout, r)
	}
	t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	row := func(what, text string) { fmt.Fprintf(t, "%s\t%s\n", what, printable(text)) }
	row("name", r.Name)
	row("size", binarySize(r.Size))
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
	fmt.Fprintln(e.stdout)
	fmt.Fprintln(t, "file\tsize\trole\tdigest")
	for _, f := range r.Files {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", printable(f.Name), binarySize(f.Size), f.Role, f.Digest)
	}
	return t.Flush()
}
