package measure

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/stages/model/synth"
	"github.com/sluice-ai/sluice/stages/place"
)

type Suggest struct {
	Ctx    int      `name:"ctx" default:"8192" placeholder:"N" help:"Tokens that a conversation shall hold. Default: 8192."`
	RAM    env.Size `name:"ram" placeholder:"SIZE" help:"Memory to suggest for, such as 16G, in place of what is free here."`
	Device string   `placeholder:"NAME" help:"Where models are computed, as for run. Default: that of run."`
	JSON   bool     `name:"json" help:"Print JSON."`
}

func (Suggest) Examples() [2]string {
	return [2]string{`sluice suggest`, `sluice suggest --ram 16G --ctx 32768`}
}

// Help is what the flags do not say.
func (Suggest) Help() string {
	return "The list of models is part of the program and as old as that: nothing is looked up. Sizes follow from the shapes " +
		"that the models were published with, speeds from the same prediction as those of sluice plan, by what was measured of " +
		"this machine: they are estimates, of one answer at the beginning of a conversation. What a model is worth is not judged."
}

func (c *Suggest) Run(e *env.Env) (err error) {
	if err := env.Within("--ctx", c.Ctx, 1, env.MaxTokens); err != nil {
		return err
	}
	flags := compute.FlagsFor(c.Device)
	device, err := flags.OpenDevice(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	measured, err := compute.RecallAt(e, storeFolder(e), device)
	if err != nil {
		return err
	}
	s := SuggestJSON{Memory: cmp.Or(int64(c.RAM), mem.Available()), Device: device.Name(), Context: c.Ctx,
		Measured: measured, Models: []SuggestedModel{}}
	speeds := measured.Planned(device)
	ask := actors.Model{KV: backend.KVF16, Context: c.Ctx, Sequences: 1, Layers: flags.GPULayers.Planned(),
		Speeds: func() (place.Speeds, error) { return speeds, nil }}
	for i := range suggestions {
		m, err := suggestions[i].judge(ask, device, &speeds, s.Memory)
		if err != nil {
			return fmt.Errorf("%s: %w", suggestions[i].shape, err)
		}
		s.Models = append(s.Models, *m)
	}
	if c.JSON {
		return env.PrintJSON(e.Stdout, s)
	}
	return s.print(e)
}

// storeFolder is the folder where models would come, or the nearest one above it that is there.
func storeFolder(e *env.Env) string {
	s, err := namedmodel.OpenStore(e.Lookup)
	if err != nil {
		return "."
	}
	folder := s.Dir()
	for folder != filepath.Dir(folder) {
		if _, err := os.Stat(folder); err == nil {
			break
		}
		folder = filepath.Dir(folder)
	}
	return folder
}

// The JSON of suggestions. Its names are part of the interface.
type (
	SuggestJSON struct {
		Memory  int64            `json:"memory"` // bytes of this machine's that are taken to be free
		Device  string           `json:"device"`
		Context int              `json:"context"`
		Models  []SuggestedModel `json:"models"`

		Measured compute.Speeds `json:"measured"` // of this machine; a disk of 0 was not measured
	}

	// SuggestedModel is what is expected of one model.
	SuggestedModel struct {
		Pull       string  `json:"pull"` // what sluice pull takes
		Parameters int64   `json:"parameters"`
		Active     int64   `json:"active_parameters"`
		Size       int64   `json:"size"`            // of the file, without its metadata
		KVBytes    int64   `json:"kv_bytes"`        // of a token, in all layers
		Takes      int64   `json:"memory_bytes"`    // of weights, KV cache, what steps compute with; 0: none fits
		Fits       string  `json:"fits"`            // "memory", "streams" (from disk, or to the GPU) or "no"
		Why        string  `json:"why,omitempty"`   // it does not fit
		Decode     float64 `json:"decode"`          // tokens a second of an answer, predicted; 0: not known
		Prefill    float64 `json:"prefill"`         // of a prompt; 0: not known
		Context    int     `json:"context"`         // tokens that it would hold
		Trained    int     `json:"trained_context"` // tokens that it was trained for
	}
)

// Values of SuggestedModel.Fits.
const (
	fitsMemory = "memory"
	fitsStream = "streams"
	fitsNot    = "no"
)

// judge plans the model, as it is asked for, for a device with so many bytes of the program's memory.
func (g *suggestion) judge(ask actors.Model, d backend.Device, speeds *place.Speeds, memory int64) (
	*SuggestedModel, error) {
	config, err := synth.Find(g.shape)
	if err != nil {
		return nil, err
	}
	recipe, ok := ftype.Find(g.quant)
	if !ok {
		return nil, fmt.Errorf("no file type %q", g.quant)
	}
	shaped, err := models.ShapedOf(g.shape, config, recipe)
	if err != nil {
		return nil, err
	}
	bound, err := shaped.Bound()
	if err != nil {
		return nil, err
	}
	m := &SuggestedModel{Pull: g.pull, Parameters: shaped.Parameters, Active: shaped.Active, Size: shaped.Bytes,
		KVBytes: ask.KV.BlockBytes(bound.Program) / backend.BlockSize, Fits: fitsMemory, Trained: config.Context}
	m.Context = min(ask.Context, m.Trained)
	ask.Context = m.Context
	plan, err := actors.PlanShape(&ask, bound, d, memory)
	if err != nil {
		m.Fits, m.Why = fitsNot, err.Error()
		return m, nil
	}
	m.Takes = plan.Host().Bytes() + plan.Beyond().Bytes() + plan.Scratch
	expected := plan.Expect(bound, *speeds, 1, 0)
	if plan.Streams() {
		m.Fits = fitsStream
	}
	if expected.Streamed > 0 && speeds.Disk == 0 {
		return m, nil // how fast it is read is not known
	}
	m.Decode, m.Prefill = finite(expected.Decode), finite(expected.Prefill)
	return m, nil
}

// finite is x, or 0 for what is not known.
func finite(x float64) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	return x
}

// print prints the table for a person.
func (s *SuggestJSON) print(e *env.Env) error {
	fmt.Fprintf(e.Stdout, "for %s of memory, computed on %s, with a context of %d tokens:\n\n", env.BinarySize(s.Memory),
		env.Printable(s.Device), s.Context)
	t := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "model\tparameters\tactive\tsize\ttokens/s\tfits")
	best, unknown := -1, false
	for i := range s.Models {
		m := &s.Models[i]
		speed, fits := "–", map[string]string{fitsMemory: "in memory", fitsStream: "streamed", fitsNot: "no"}[m.Fits]
		if m.Decode > 0 {
			speed = "≈ " + env.TokensRate(m.Decode)
		} else if m.Fits == fitsStream {
			speed, unknown = "?", true
		}
		if m.Fits == fitsMemory && m.Decode >= readable {
			best = i
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Pull, env.Parameters(m.Parameters), env.Parameters(m.Active),
			env.BinarySize(m.Size), speed, fits)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(e.Stdout, "\nSpeeds are predicted from %s of memory, measured %s (again: doctor --probe).\n"+
		"Weights, KV cache and what steps compute with are counted.\n", env.PerSecond(s.Measured.Memory), s.Measured.Measured.Format(time.DateOnly))
	if unknown {
		fmt.Fprintln(e.Stdout, "How fast this disk is read is not known: sluice doctor --probe measures it.")
	}
	if best < 0 {
		_, err := fmt.Fprintf(e.Stdout, "\nNone fits and answers at %d tokens/s or more; the smallest: sluice pull %s\n", readable,
			s.Models[0].Pull)
		return err
	}
	_, err := fmt.Fprintf(e.Stdout, "\nThe largest that fits and answers at %d tokens/s or more:\n  sluice pull %s\n", readable,
		s.Models[best].Pull)
	return err
}

// readable is the tokens a second of an answer that can be read as it comes.
const readable = 5
