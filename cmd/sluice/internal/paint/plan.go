package paint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// The picture that plans are made for.
const (
	plannedSide = 1024 // pixels
	plannedRows = plannedSide / side / pixels.Patch * plannedSide / side / pixels.Patch
)

// Paints says whether at a path is a model that makes pictures: diffusers' folder, or the file of a transformer.
func Paints(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if info.IsDir() {
		_, err := os.Stat(filepath.Join(path, "model_index.json"))
		return err == nil
	}
	f, err := look(path)
	return err == nil && (f.kind == pixels.ZImageKind || f.kind == pixels.FluxKind)
}

// planned is a program of a part, with what is computed of it for a picture.
type planned struct {
	name    string
	program *ir.Bound
	rows    int  // of a step
	once    bool // it is computed once a picture, not in each evaluation
	fixed   bool // all of its weights stay

	model place.Model
}

// Plan prints where the weights of a model's parts lie, with a budget of so many bytes for each, and how long an
// evaluation should take; with json, as JSON.
func Plan(e *env.Env, path string, bytes int64, json bool) (err error) {
	p, err := findParts(path, Files{})
	if err != nil {
		return err
	}
	d, err := cpu.New(0, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	room := paint.Room{Device: d, Bytes: bytes}
	var all []planned
	var speeds compute.Speeds
	for _, kind := range []pixels.Kind{pixels.Reader, pixels.ClipKind, pixels.T5Kind, p.kind, pixels.AutoencoderKind} {
		if p.paths[kind] == "" {
			continue
		}
		f, config, err := p.opened(kind)
		if err != nil {
			return err
		}
		list, err := p.programs(kind, f, config)
		if err == nil {
			err = placed(&room, f, list)
		}
		if err == nil && kind == p.kind {
			speeds, err = compute.Recall(e, f.Part(0), d)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		all = append(all, list...)
	}
	t := planText{all, bytes, speeds.Planned(d)}
	if json {
		return env.PrintJSON(e.Stdout, t.json())
	}
	return t.print(e, path, &speeds)
}

// opened opens a part; an encoder that is a model of language becomes a file.
func (p *parts) opened(kind pixels.Kind) (*gguf.File, []byte, error) {
	if kind == pixels.Reader {
		f, err := namedmodel.OpenEncoder(p.paths[kind], p.words[kind])
		return f, nil, err
	}
	return p.open(kind)
}

// programs records the programs of a part.
func (p *parts) programs(kind pixels.Kind, f *gguf.File, config []byte) ([]planned, error) {
	words := mostTokens
	if p.kind == pixels.FluxKind && !p.guided {
		words = schnellTokens
	}
	list := listed(f)
	switch kind {
	case pixels.Reader:
		_, part, _, err := paint.Reader(f)
		return []planned{{name: "encoder of texts", program: part, rows: words, once: true}}, err
	case pixels.ClipKind, pixels.T5Kind:
		return p.encoders(kind, list, config, words)
	case pixels.AutoencoderKind:
		s, err := settings(config, "vae", pixels.Published, pixels.ReadSettings)
		if err != nil {
			return nil, err
		}
		a, err := pixels.NewAutoencoder(list, s)
		if err != nil {
			return nil, err
		}
		return []planned{{name: "decoder", program: a.Decoder, rows: plannedSide / side * plannedSide / side, once: true,
			fixed: true}}, nil
	case pixels.ZImageKind:
		s, err := settings(config, "transformer", pixels.ZImageTurbo, pixels.ReadZImageSettings)
		if err != nil {
			return nil, err
		}
		z, err := pixels.NewZImage(list, s)
		if err != nil {
			return nil, err
		}
		return []planned{{name: "transformer: text", program: z.Text, rows: words, once: true},
			{name: "time", program: z.Timed, rows: 1}, {name: "image", program: z.Image, rows: plannedRows},
			{name: "both", program: z.Joint, rows: plannedRows + words}}, nil
	}
	s, err := settings(config, "transformer", pixels.Flux1, pixels.ReadFluxSettings)
	if err != nil {
		return nil, err
	}
	x, err := pixels.NewFlux(list, s)
	if err != nil {
		return nil, err
	}
	return []planned{{name: "transformer: modulation", program: x.Timed, rows: 1},
		{name: "image", program: x.Image, rows: plannedRows}, {name: "text", program: x.Text, rows: words},
		{name: "attention", program: x.Attention, rows: plannedRows + words},
		{name: "both", program: x.Joint, rows: plannedRows + words}}, nil
}

// encoders records an encoder of FLUX.1.
func (p *parts) encoders(kind pixels.Kind, list []ir.Tensor, config []byte, words int) ([]planned, error) {
	name, record, s := "T5", pixels.NewT5, pixels.T5Settings(list)
	if kind == pixels.ClipKind {
		name, record, s, words = "CLIP", pixels.NewClip, pixels.ClipSettings(list), clipTokens
	}
	if config != nil {
		var err error
		if _, s, err = pixels.ReadTextSettings(config); err != nil {
			return nil, err
		}
	}
	e, err := record(list, s)
	if err != nil {
		return nil, err
	}
	return []planned{{name: "encoder of texts: " + name, program: e.Bound, rows: words, once: true}}, nil
}

// placed gives the programs of one file their plans.
func placed(r *paint.Room, f *gguf.File, all []planned) error {
	var programs []*ir.Bound
	for i := range all {
		programs = append(programs, all[i].program)
	}
	budget := int64(0)
	if !all[0].fixed {
		budget = r.Budget(programs...)
	}
	models, err := place.Together(programs, budget)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	for i := range all {
		all[i].model = models[i]
	}
	return nil
}

// planText is a plan to be shown.
type planText struct {
	all    []planned
	bytes  int64 // that were asked for; 0: none were
	speeds place.Speeds
}

// The JSON of a plan. Its names are part of the interface.
type (
	planJSON struct {
		Budget   int64      `json:"budget"` // of a part, for weights; 0: none was given
		Programs []jsonPart `json:"programs"`
		Seconds  float64    `json:"seconds_per_evaluation"`
		Streamed int64      `json:"streamed_bytes_per_evaluation"`
	}
	jsonPart struct {
		Name     string      `json:"name"`
		Weights  int64       `json:"weights"` // in memory, slots too
		Streamed int64       `json:"streamed"`
		Slots    int         `json:"slots"`
		Seconds  float64     `json:"seconds"`
		Once     bool        `json:"once,omitempty"` // a picture, not an evaluation
		Groups   []jsonGroup `json:"groups"`
	}
	jsonGroup struct {
		Segment int    `json:"segment"`
		Home    string `json:"home"`
		Bytes   int64  `json:"bytes"`
	}
)

func (t *planText) json() planJSON {
	out := planJSON{Budget: t.bytes}
	for i := range t.all {
		x := &t.all[i]
		j := jsonPart{Name: x.name, Weights: x.model.Host().Weights, Streamed: x.model.Streamed(),
			Slots: len(x.model.Ring.Slots), Seconds: x.model.Seconds(x.program, &t.speeds, x.rows), Once: x.once}
		for _, h := range x.model.Homes {
			j.Groups = append(j.Groups, jsonGroup{h.Group.Segment, h.Tier.String(), h.Group.Bytes})
		}
		if out.Programs = append(out.Programs, j); !x.once {
			out.Seconds += j.Seconds
			out.Streamed += j.Streamed
		}
	}
	return out
}

func (t *planText) print(e *env.Env, path string, measured *compute.Speeds) error {
	fmt.Fprintf(e.Stdout, "%s: a picture of %d × %d pixels\n\n", env.Printable(path), plannedSide, plannedSide)
	table := tabwriter.NewWriter(e.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "weights\tin memory\tread each time\tblocks, by slots\ta step\t\n")
	all := t.json()
	for _, x := range all.Programs {
		streams, slots := "–", "–"
		if x.Streamed > 0 {
			streams = env.BinarySize(x.Streamed)
			slots = fmt.Sprintf("%d by %d", t.blocks(x.Name), x.Slots)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.2g s\t\n", x.Name, env.BinarySize(x.Weights), streams, slots, x.Seconds)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(e.Stdout, "\nexpected: %.3g s an evaluation; %s read from disk for it\n", all.Seconds, env.BinarySize(all.Streamed))
	if t.bytes > 0 {
		fmt.Fprintln(e.Stdout, "--ram bounds weights and slots of each part: one is in memory at a time")
	}
	_, err := fmt.Fprintf(e.Stdout, "measured %s: disk %s, memory %s (again: doctor --probe)\n",
		measured.Measured.Format("2006-01-02"), env.PerSecond(measured.Disk), env.PerSecond(measured.Memory))
	return err
}

// blocks is how many groups of a program go through slots.
func (t *planText) blocks(name string) int {
	for i := range t.all {
		if t.all[i].name == name {
			return len(t.all[i].model.Ring.Groups)
		}
	}
	return 0
}
