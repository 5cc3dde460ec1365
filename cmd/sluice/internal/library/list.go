package library

import (
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/storage/others"
	"github.com/sluice-ai/sluice/storage/store"
)

type List struct {
	All  bool `name:"all" help:"List what Ollama, LM Studio and Hugging Face's cache keep here, too. -m takes those names, and nothing is copied."`
	JSON bool `name:"json" help:"Print JSON."`
}

func (List) Examples() [2]string { return [2]string{`sluice list`, `sluice list --all`} }

func (c *List) Run(e *env.Env) error {
	s, err := namedmodel.OpenStore(e.Lookup)
	if err != nil {
		return err
	}
	stored, err := s.List()
	if err != nil {
		return err
	}
	unfinished, err := s.Unfinished()
	if err != nil {
		return err
	}
	list := []ModelRecord{}
	for i := range stored {
		list = append(list, record(s, &stored[i], true))
	}
	for i := range unfinished {
		r := record(s, &unfinished[i], false)
		if !slices.ContainsFunc(list, func(o ModelRecord) bool { return o.Name == r.Name }) {
			list = append(list, r)
		}
	}
	if c.All {
		for i := range list {
			list[i].Program = "sluice"
		}
		for _, m := range others.List(namedmodel.OtherPlaces(e.Lookup)) {
			list = append(list, otherRecord(&m))
		}
	}
	switch {
	case c.JSON:
		return env.PrintJSON(e.Stdout, list)
	case len(list) > 0:
		return c.print(e, list)
	}
	elsewhere := ""
	if c.All {
		elsewhere = ", nor of Ollama, LM Studio or in Hugging Face's cache"
	}
	_, err = fmt.Fprintf(e.Stdout, "no models in %s%s: sluice suggest names some, sluice pull NAME gets one\n", env.Printable(s.Dir()), elsewhere)
	return err
}

// print prints the list for a person.
func (c *List) print(e *env.Env, list []ModelRecord) error {
	t := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	head := "name\tsize\tpulled"
	if c.All {
		head += "\tkept by"
	}
	fmt.Fprintln(t, head)
	for _, r := range list {
		fmt.Fprintf(t, "%s\t%s\t%s", env.Printable(r.Name), env.BinarySize(r.Size), r.day())
		for _, text := range []string{r.Program, r.Note} {
			if text != "" {
				fmt.Fprintf(t, "\t%s", env.Printable(text))
			}
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// ModelRecord is a model of the store, or of another program, in JSON. Its names are part of the interface.
type ModelRecord struct {
	Name     string       `json:"name"`
	Size     int64        `json:"size"`
	Complete bool         `json:"complete"`
	Arrived  int64        `json:"arrived"` // bytes that were downloaded so far
	Path     string       `json:"path,omitempty"`
	Source   string       `json:"source,omitempty"`
	Revision string       `json:"revision,omitempty"`
	Pulled   time.Time    `json:"pulled,omitzero"`
	Note     string       `json:"note,omitempty"`    // what is wrong with it
	Program  string       `json:"kept_by,omitempty"` // with --all
	Files    []store.File `json:"files"`
	Model    *Contents    `json:"model,omitempty"` // of show; nil: its file cannot be read
}

// record describes a model, or an unfinished pull.
func record(s *store.Store, m *store.Model, finished bool) ModelRecord {
	r := ModelRecord{Name: m.Name.String(), Size: m.Size(), Arrived: s.Arrived(&m.Manifest), Source: m.Source,
		Revision: m.Revision, Files: m.Files}
	switch {
	case m.Damage != nil:
		r.Note, r.Files = m.Damage.Error(), []store.File{}
	case !finished:
		r.Note = fmt.Sprintf("%s have come: sluice pull %s goes on", env.BinarySize(r.Arrived), m.Name)
	default:
		r.Pulled = m.Pulled
		path, err := s.Path(m)
		if r.Path = path; err != nil {
			r.Note = err.Error()
		}
		r.Complete = err == nil && s.Complete(&m.Manifest)
	}
	return r
}

// otherRecord describes a model that another program keeps.
func otherRecord(m *others.Model) ModelRecord {
	r := ModelRecord{Name: m.Name, Size: m.Size, Complete: m.Damage == nil, Arrived: m.Size, Path: m.Path,
		Program: m.Program, Files: []store.File{}}
	if m.Damage != nil {
		r.Complete, r.Arrived, r.Path, r.Note = false, 0, "", m.Damage.Error()
	}
	return r
}

// day is when a model was pulled.
func (r *ModelRecord) day() string {
	if r.Pulled.IsZero() {
		return "-"
	}
	return r.Pulled.Format(time.DateOnly)
}
