package library

import (
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/storage/store"
)

type List struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (List) Examples() [2]string { return [2]string{`sluice list`, `sluice list --json`} }

func (c *List) Run(e *env.Env) error {
	s, err := models.OpenStore(e)
	if err != nil {
		return err
	}
	models, err := s.List()
	if err != nil {
		return err
	}
	unfinished, err := s.Unfinished()
	if err != nil {
		return err
	}
	list := []ModelRecord{}
	for i := range models {
		list = append(list, record(s, &models[i], true))
	}
	for i := range unfinished {
		r := record(s, &unfinished[i], false)
		if !slices.ContainsFunc(list, func(o ModelRecord) bool { return o.Name == r.Name }) {
			list = append(list, r)
		}
	}
	if c.JSON {
		return env.PrintJSON(e.Stdout, list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(e.Stdout, "no models in %s: sluice pull OWNER/NAME gets one\n", env.Printable(s.Dir()))
		return err
	}
	t := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\tsize\tpulled")
	for _, r := range list {
		note := ""
		if r.Note != "" {
			note = "\t" + env.Printable(r.Note)
		}
		fmt.Fprintf(t, "%s\t%s\t%s%s\n", env.Printable(r.Name), env.BinarySize(r.Size), r.day(), note)
	}
	return t.Flush()
}

// ModelRecord is a model of the store in JSON. Its names are part of the interface.
type ModelRecord struct {
	Name     string       `json:"name"`
	Size     int64        `json:"size"`
	Complete bool         `json:"complete"`
	Arrived  int64        `json:"arrived"` // bytes that were downloaded so far
	Path     string       `json:"path,omitempty"`
	Source   string       `json:"source,omitempty"`
	Revision string       `json:"revision,omitempty"`
	Pulled   time.Time    `json:"pulled,omitzero"`
	Note     string       `json:"note,omitempty"` // what is wrong with it
	Files    []store.File `json:"files"`
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

// day is when a model was pulled.
func (r *ModelRecord) day() string {
	if r.Pulled.IsZero() {
		return "-"
	}
	return r.Pulled.Format(time.DateOnly)
}
