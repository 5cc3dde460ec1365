package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
)

type planCmd struct {
	Model string `arg:"" placeholder:"FILE" help:"Model file (GGUF)."`
	computeFlags
	Seqs int  `default:"1" placeholder:"N" help:"Sequences at once, for which the speed is expected. Default: 1."`
	JSON bool `name:"json" help:"Print JSON."`
}

func (planCmd) examples() [2]string {
	return [2]string{`sluice plan model.gguf`, `sluice plan model.gguf --ram 6G --ctx 8192`}
}

func (c *planCmd) Run(e *env) error {
	if err := cmp.Or(c.check(), within("--seqs", c.Seqs, 1, 256)); err != nil {
		return err
	}
	plan, measured, err := c.plan(e)
	if err != nil {
		return err
	}
	expected := plan.Model.Expect(plan.Info.Program, measured.planned(), c.Seqs, 0)
	if c.JSON {
		return printJSON(e.stdout, planJSON(plan, int64(c.RAM), expected))
	}
	t := planText{plan: plan, asked: int64(c.RAM), measured: measured, expected: expected, sequences: c.Seqs}
	return t.print(e)
}

// plan plans the model, and finds out how fast the machine is.
func (c *planCmd) plan(e *env) (plan *actors.Plan, measured speeds, err error) {
	file, err := openWeights(c.Model)
	if err != nil {
		return nil, measured, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	force, _ := e.lookup("SLUICE_CPU")
	device, err := cpu.New(c.Threads, force)
	if err != nil {
		return nil, measured, fmt.Errorf("SLUICE_CPU: %w", err)
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	kv, _ := backend.ParseKV(c.KV) // kong has checked it
	m := &actors.Model{File: file, KV: kv, Context: c.Ctx, Sequences: c.Seqs, Weights: int64(c.RAM), NoRepack: c.NoRepack}
	if plan, err = actors.PlanFor(m, device); err != nil {
		return nil, measured, err
	}
	measured, err = recall(e, file.Part(0))
	return plan, measured, err
}

// The JSON of a plan. Its names are part of the interface.
type (
	jsonPlan struct {
		Tiers    []jsonTier   `json:"tiers"`
		Groups   []jsonGroup  `json:"groups"`
		Expected jsonExpected `json:"expected"`
		Streamed float64      `json:"streamed_bytes_per_token"`
	}
	jsonTier struct {
		Name    string `json:"name"`
		Budget  int64  `json:"budget"` // for weights; 0: none was given
		Weights int64  `json:"weights"`
		KV      int64  `json:"kv"`
		Scratch int64  `json:"scratch"`
	}
	jsonGroup struct {
		Segment int    `json:"segment"`
		Expert  int    `json:"expert"` // -1: none
		Home    string `json:"home"`
		Bytes   int64  `json:"bytes"`
	}
	jsonExpected struct {
		Decode  float64 `json:"decode"` // tokens a second
		Prefill float64 `json:"prefill"`
	}
)

func planJSON(p *actors.Plan, asked int64, expected place.Expected) jsonPlan {
	device := jsonTier{Name: place.Device.String(), Budget: asked, Weights: p.Model.Weights + p.Slabs,
		KV: p.Memory.KV, Scratch: p.Memory.Scratch}
	disk := jsonTier{Name: place.Disk.String()}
	out := jsonPlan{Expected: jsonExpected{expected.Decode, expected.Prefill}, Streamed: expected.Streamed}
	for _, h := range p.Model.Homes {
		if h.Tier == place.Disk {
			disk.Weights += h.Group.Bytes
		}
		out.Groups = append(out.Groups, jsonGroup{h.Group.Segment, h.Group.Expert, h.Tier.String(), h.Group.Bytes})
	}
	out.Tiers = []jsonTier{device, disk}
	return out
}

// planText shows a plan to a person.
type planText struct {
	plan      *actors.Plan
	asked     int64
	measured  speeds
	expected  place.Expected
	sequences int
}

func (t *planText) print(e *env) error {
	p := t.plan
	fmt.Fprintf(e.stdout, "%s: %s of weights, a context of %d tokens\n\n", printable(p.Info.Name),
		binarySize(p.Info.WeightBytes), p.Info.Context)
	if err := t.parts(e.stdout); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout)
	t.bar(e.stdout)
	return t.speed(e.stdout)
}

// kinds of weights, as the table shows them.
var partNames = [...]string{"embedding", "vectors", "attention", "feed-forward", "routers", "experts", "head"}

// part is in which line of the table a group stands.
func part(p *ir.Bound, g *ir.Group) int {
	switch kind := p.Segments[g.Segment].Kind; {
	case g.Use == ir.Table:
		return 0
	case g.Use == ir.Vector:
		return 1
	case kind == ir.SegMix:
		return 2
	case kind == ir.SegFFN:
		return 3
	case kind == ir.SegRoute:
		return 4
	case kind == ir.SegExperts:
		return 5
	}
	return 6
}

// parts prints where the weights lie, by kind.
func (t *planText) parts(w io.Writer) error {
	var all, resident [len(partNames)]int64
	m := &t.plan.Model
	for _, h := range m.Homes {
		i := part(t.plan.Info.Program, &h.Group)
		all[i] += h.Group.Bytes
		if h.Tier == place.Device {
			resident[i] += h.Group.Bytes
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "weights\tbytes\tin memory\tin the file\t")
	for i, name := range partNames {
		if all[i] > 0 {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t\n", name, binarySize(all[i]), orNone(resident[i]),
				orNone(all[i]-resident[i]))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if r := m.Parts[0].Ring; len(r.Groups) > 0 {
		fmt.Fprintf(w, "\n%s of dense weights stream through %s.\n", count(len(r.Groups), "group"),
			count(len(r.Slots), "slot"))
	}
	if shelves := m.Parts[0].Shelves; len(shelves) > 0 {
		first, last := &shelves[0], &shelves[len(shelves)-1]
		slots := fmt.Sprint(len(last.Slots))
		if len(first.Slots) != len(last.Slots) {
			slots = fmt.Sprintf("%d or %d", len(last.Slots), len(first.Slots))
		}
		fmt.Fprintf(w, "\nThe %d experts of a layer share %s slots; a token uses %d of them.\n", len(first.Groups), slots,
			first.Used)
	}
	return nil
}

func orNone(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return binarySize(bytes)
}

const barColumns = 60

// bar draws what takes the memory.
func (t *planText) bar(w io.Writer) {
	p := t.plan
	resident := int64(0)
	for _, h := range p.Model.Homes {
		if h.Tier == place.Device {
			resident += h.Group.Bytes
		}
	}
	shares := []struct {
		sign  string
		name  string
		bytes int64
	}{
		{"█", "resident weights", resident}, {"▓", "slots", p.Model.Weights - resident}, {"▒", "slabs", p.Slabs},
		{"░", "KV cache", p.Memory.KV}, {"·", "scratch", p.Memory.Scratch},
	}
	total := int64(0)
	for _, s := range shares {
		total += s.bytes
	}
	drawn, at := 0, int64(0)
	var bar, legend strings.Builder
	for _, s := range shares {
		at += s.bytes
		end := int(float64(at) / float64(max(total, 1)) * barColumns)
		bar.WriteString(strings.Repeat(s.sign, end-drawn))
		drawn = end
		if s.bytes > 0 {
			fmt.Fprintf(&legend, "  %s %s %s\n", s.sign, binarySize(s.bytes), s.name)
		}
	}
	fmt.Fprintf(w, "memory %s\n", bar.String())
	fmt.Fprint(w, legend.String())
	fmt.Fprintf(w, "  = %s of %s available", binarySize(total), binarySize(p.Available))
	if t.asked > 0 {
		fmt.Fprintf(w, "; --ram bounds the weights, slots and slabs")
	}
	fmt.Fprint(w, "\n\n")
}

// speed says what to expect.
func (t *planText) speed(w io.Writer) error {
	x := &t.expected
	fmt.Fprintf(w, "expected: %s tokens/s of answers (%s at once), %s of prompts\n", tokensRate(x.Decode),
		count(t.sequences, "sequence"), tokensRate(x.Prefill))
	if x.Streamed > 0 {
		fmt.Fprintf(w, "read from disk for each token: %s\n", binarySize(int64(x.Streamed)))
	}
	if x.Hits < 1 {
		fmt.Fprintf(w, "experts found in memory: %.0f %%, if all are chosen alike (most models favour some)\n", 100*x.Hits)
	}
	s := &t.measured
	_, err := fmt.Fprintf(w, "measured %s: disk %s, memory %s (again: doctor --probe)\n",
		s.Measured.Format("2006-01-02"), perSecond(s.Disk), perSecond(s.Memory))
	return err
}

// tokensRate shows tokens a second in three digits or so.
func tokensRate(x float64) string {
	switch {
	case x == 0:
		return "an unknown number of"
	case x < 10:
		return fmt.Sprintf("%.2f", x)
	case x < 100:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
