package library

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/stages/model/modelfile"
)

type Show struct {
	Name string `arg:"" placeholder:"NAME" help:"Model in the store."`
	File bool   `name:"modelfile" help:"Print the Modelfile that sluice create makes this model of."`
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
	s, err := namedmodel.OpenStore(e.Lookup)
	if err != nil {
		return err
	}
	m, err := s.Find(name)
	if err != nil {
		return err
	}
	r := record(s, m, true)
	if c.File {
		f, err := namedmodel.Open(e.Lookup, m.Name.Full())
		if err != nil {
			return err
		}
		defer f.Close()
		said := modelfile.Modelfile{From: r.Name, Manner: *modelfile.MannerOf(&f.Meta)}
		text := said.String()
		if e.IsTerminal(e.Stdout) {
			text = strings.Map(env.Harmless, text)
		}
		_, err = fmt.Fprint(e.Stdout, text)
		return err
	}
	if m.Damage == nil && r.Note == "" {
		if r.Model, err = contents(e, m.Name.Full()); err != nil {
			r.Note = err.Error()
		}
	}
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
	if r.Model != nil {
		r.Model.rows(func(what, text string) { fmt.Fprintf(t, "%s\t%s\n", what, text) })
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

// Contents is what a model's file says, with what was said beside it. Its JSON names are part of the interface.
type Contents struct {
	Architecture string   `json:"architecture"`
	Parameters   int64    `json:"parameters"`
	Type         string   `json:"type,omitempty"` // of the file; empty: it does not say
	Context      int64    `json:"context"`        // positions it was trained for; 0: it does not say
	Template     string   `json:"chat_template,omitempty"`
	System       string   `json:"system,omitempty"`
	Settings     []string `json:"settings"` // as PARAMETER of a Modelfile has them
	Messages     int      `json:"messages"` // that conversations begin with
}

// contents reads the header of a model in the store.
func contents(e *env.Env, name string) (*Contents, error) {
	f, err := namedmodel.Open(e.Lookup, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	said := modelfile.MannerOf(&f.Meta)
	c := &Contents{Template: said.Template, System: said.System, Messages: len(said.Messages),
		Settings: strings.FieldsFunc(said.Parameters.Lines(), func(r rune) bool { return r == '\n' })}
	c.Architecture, _ = f.Meta.String("general.architecture")
	c.Context, _ = f.Meta.Int(c.Architecture + ".context_length")
	if n, err := f.Meta.Int("general.file_type"); err == nil {
		c.Type, _ = ftype.Name(n)
	}
	for _, t := range f.Tensors {
		c.Parameters += models.Values(t.Shape)
	}
	return c, nil
}

// mostShown is how many characters of a text a line shows.
const mostShown = 200

// rows prints the contents, a line for each. Texts are printable.
func (c *Contents) rows(row func(what, text string)) {
	row("architecture", env.Printable(cmp.Or(c.Architecture, "none named")))
	row("parameters", strings.TrimSpace(env.Parameters(c.Parameters)+" "+c.Type))
	if c.Context > 0 {
		row("context", fmt.Sprintf("%d positions", c.Context))
	}
	template := "none"
	if c.Template != "" {
		template = fmt.Sprintf("%d characters: sluice template shows it", len([]rune(c.Template)))
	}
	row("template", template)
	if c.System != "" {
		short := []rune(strings.Join(strings.Fields(c.System), " "))
		if len(short) > mostShown {
			short = append(short[:mostShown], []rune("…")...)
		}
		row("system", env.Printable(string(short)))
	}
	for i, line := range c.Settings {
		what := ""
		if i == 0 {
			what = "settings"
		}
		name, value, _ := strings.Cut(line, " ")
		row(what, name+" "+env.Printable(strings.Trim(value, `"`)))
	}
	if c.Messages > 0 {
		row("begins with", env.Count(c.Messages, "message"))
	}
}
