package measure

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/paint"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/stages/place"
)

type Plan struct {
	Model string `arg:"" placeholder:"MODEL" help:"Model file (GGUF), the folder of a model (safetensors), the name of one in the store, or a model that makes pictures, as sluice image takes it."`
	compute.Flags
	Seqs int  `default:"1" placeholder:"N" help:"Sequences at once, for which the speed is expected. Default: 1."`
	JSON bool `name:"json" help:"Print JSON."`
}

func (Plan) Examples() [2]string {
	return [2]string{`sluice plan model.gguf`, `sluice plan model.gguf --ram 6G --ctx 8192`}
}

func (c *Plan) Run(e *env.Env) error {
	if err := cmp.Or(c.Check(), env.Within("--seqs", c.Seqs, 1, 256)); err != nil {
		return err
	}
	if paint.Paints(c.Model) {
		if c.VRAM > 0 {
			return env.Usagef("--vram: pictures are computed by the processor, leave it out")
		}
		return paint.Plan(e, c.Model, int64(c.RAM), c.JSON)
	}
	t, err := c.plan(e)
	if err != nil {
		return err
	}
	if c.JSON {
		return env.PrintJSON(e.Stdout, t.json())
	}
	return t.print(e)
}

// plan plans the model, and finds the machine's speeds.
func (c *Plan) plan(e *env.Env) (t *planText, err error) {
	file, err := c.OpenPlanned(e, c.Model)
	if err != nil {
		return nil, err
	}
	m := actors.Model{File: file}
	defer func() { err = errors.Join(err, m.Close()) }()
	device, err := c.OpenDevice(e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	if m, err = c.ModelOn(e, "", file, device); err != nil {
		return nil, err
	}
	m.Sequences = c.Seqs
	t = &planText{ram: int64(c.RAM), vram: int64(c.VRAM), sequences: c.Seqs, device: device.Name()}
	if t.plan, err = actors.PlanFor(&m, device); err != nil {
		return nil, err
	}
	if namedmodel.IsOutline(file) {
		t.measured, err = compute.RecallBeside(e, file.Part(0).Path, device)
	} else {
		t.measured, err = compute.Recall(e, file.Part(0), device)
	}
	if err != nil {
		return nil, err
	}
	speeds, program := t.measured.Planned(device), t.plan.Info.Program
	t.speeds, t.expected = speeds, t.plan.Model.Expect(program, speeds, c.Seqs, 0)
	end := max(0, t.plan.Info.Context-t.plan.Model.Rows)
	t.atEnd = t.plan.Model.Expect(program, speeds, c.Seqs, end).Prefill
	return t, nil
}

// The JSON of a plan. Its names are part of the interface.
type (
	// PlanJSON is all of it.
	// Wide: a plan says so much.
	PlanJSON struct {
		Tiers    []jsonTier    `json:"tiers"`
		Groups   []jsonGroup   `json:"groups"`
		Expected jsonExpected  `json:"expected"`
		Streamed float64       `json:"streamed_bytes_per_token"`
		Copied   float64       `json:"copied_bytes_per_token,omitempty"` // to a device with memory of its own
		Layers   int           `json:"host_layers,omitempty"`            // the first ones, which the processor computes
		KVHost   int64         `json:"kv_host,omitempty"`                // host memory for blocks that leave the cache
		KV       string        `json:"kv_type"`
		KVBytes  int64         `json:"kv_bytes_per_token"`
		KVBitsK  float64       `json:"kv_bits_k"` // of a value, scales and all
		KVBitsV  float64       `json:"kv_bits_v"`
		Experts  int           `json:"host_experts,omitempty"` // layers of which the host computes only the experts
		Draft    *jsonTier     `json:"draft,omitempty"`        // what a draft model takes beside it, where both are computed
		Tower    *jsonTier     `json:"tower,omitempty"`        // what its tower takes of the host's memory; scratch: rows of pictures
		Networks []jsonNetwork `json:"networks,omitempty"`     // to members of the cluster that compute some of it
		Encoder  *jsonTier     `json:"encoder,omitempty"`      // the same of an encoder that reads prompts; scratch: rows of prompts
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
		Decode  float64 `json:"decode"`                   // tokens a second
		Prefill float64 `json:"prefill"`                  // at the beginning of the context
		AtEnd   float64 `json:"prefill_at_end,omitempty"` // and at its end
		First   float64 `json:"first,omitempty"`          // as Decode, of the first 32 tokens from cold
		Fill    float64 `json:"fill_bytes,omitempty"`     // read once, to fill the slots
	}
)

func (t *planText) json() PlanJSON {
	p, expected := t.plan, &t.expected
	device := jsonTier{Name: place.Device.String(), Budget: t.ram, Weights: p.Model.Host().Weights + p.Slabs,
		KV: p.Memory.KV, Scratch: p.Memory.Scratch}
	disk := jsonTier{Name: place.Disk.String(), Weights: p.Model.ByTier()[place.Disk]}
	out := PlanJSON{Expected: jsonExpected{expected.Decode, expected.Prefill, t.atEnd,
		expected.First, expected.Fill}, Streamed: expected.Streamed, Copied: expected.Copied, KVHost: p.Model.Host().Spilled,
		KV: p.Info.KV.Type, KVBytes: p.Info.KV.Bytes, KVBitsK: p.Info.KV.BitsK, KVBitsV: p.Info.KV.BitsV,
		Layers: p.Model.HostLayers(p.Info.Program.Program), Experts: p.Model.HostExperts(p.Info.Program.Program)}
	for _, h := range p.Model.Homes {
		out.Groups = append(out.Groups, jsonGroup{h.Group.Segment, h.Group.Expert, h.Tier.String(), h.Group.Bytes})
	}
	if d := p.Draft; d != nil {
		out.Draft = &jsonTier{Name: d.Info.Name, Weights: d.Memory.Weights, KV: d.Memory.KV, Scratch: d.Memory.Scratch}
	}
	if v := &p.Besides; v.Weights > 0 {
		tier := &jsonTier{Name: place.Host.String(), Weights: v.Weights, Scratch: v.Scratch}
		if out.Tower = tier; p.Info.Program.Hears {
			out.Tower, out.Encoder = nil, tier
		}
	}
	out.Networks = t.networks()
	if out.Tiers = []jsonTier{device, disk}; p.Apart {
		device.Budget, device.Weights = t.vram, p.Model.Beyond().Weights
		host := jsonTier{Name: place.Host.String(), Budget: t.ram, Weights: p.Model.Host().Weights + p.Slabs}
		out.Tiers = []jsonTier{device, host, disk}
	}
	return out
}

// planText is a plan to be printed for a person.
type planText struct {
	plan      *actors.Plan
	ram, vram int64 // that were asked for
	device    string
	measured  compute.Speeds
	speeds    place.Speeds // the same, as plans have them
	expected  place.Expected
	atEnd     float64 // Prefill at the end of the context
	sequences int
}

func (t *planText) print(e *env.Env) error {
	p := t.plan
	fmt.Fprintf(e.Stdout, "%s: %s of weights, a context of %d tokens\n\n", env.Printable(p.Info.Name),
		env.BinarySize(p.Info.WeightBytes), p.Info.Context)
	if err := t.parts(e.Stdout); err != nil {
		return err
	}
	t.division(e.Stdout)
	fmt.Fprintln(e.Stdout)
	t.bar(e.Stdout)
	t.draft(e.Stdout)
	t.besides(e.Stdout)
	return t.speed(e.Stdout)
}

// kinds of weights, as the table shows them.
var partNames = [...]string{"embedding", "vectors", "attention", "feed-forward", "routers", "experts", "head"}

// part is the index of a group's line in the table.
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
	type sums [place.Disk + 1]int64 // by tier; 0: the sum
	var all [len(partNames)]sums
	m := &t.plan.Model
	for _, h := range m.Homes {
		i := part(t.plan.Info.Program, &h.Group)
		all[i][0] += h.Group.Bytes
		all[i][h.Tier] += h.Group.Bytes
	}
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	heads, tiers := "in memory\tin the file", []place.Tier{place.Device, place.Disk}
	if t.plan.Apart {
		heads, tiers = "on "+t.beyond()+"\tin memory\tin the file", []place.Tier{place.Device, place.Host, place.Disk}
	}
	fmt.Fprintf(table, "weights\tbytes\t%s\t\n", heads)
	for i, name := range partNames {
		if all[i][0] == 0 {
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t", name, env.BinarySize(all[i][0]))
		for _, tier := range tiers {
			fmt.Fprintf(table, "%s\t", orNone(all[i][tier]))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if r := m.Ring; len(r.Groups) > 0 {
		fmt.Fprintf(w, "\n%s of dense weights stream through %s.\n", env.Count(len(r.Groups), "group"),
			env.Count(len(r.Slots), "slot"))
	}
	if shelves := m.Shelves; len(shelves) > 0 {
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

// division says which device computes which layers, if a GPU does not compute all.
func (t *planText) division(w io.Writer) {
	p := t.plan.Info.Program.Program
	n, all := t.plan.Model.HostLayers(p), place.LayersOf(p)
	if n == 0 {
		if n := t.plan.Model.HostExperts(p); n > 0 {
			fmt.Fprintf(w, "\nThe processor computes the experts of %s, %s all else.\n", env.Count(n, "layer"),
				t.beyond())
		}
		return
	}
	if missing := backend.Missing(t.plan.Traits.Devices, p); missing != nil {
		fmt.Fprintf(w, "\nThe processor computes all of it: %v.\n", missing)
		return
	}
	fmt.Fprintf(w, "\nThe processor computes the first %s, %s the last %d and the head.\n", env.Count(n, "layer"), t.beyond(),
		all-n)
}

func orNone(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return env.BinarySize(bytes)
}

// draft says what a draft model takes beside the model.
func (t *planText) draft(w io.Writer) {
	if d := t.plan.Draft; d != nil {
		who := "The draft model"
		if d.Heads {
			who = "The head that guesses tokens"
		}
		fmt.Fprintf(w, "%s takes as well: weights %s, KV cache %s, scratch %s.\n", who,
			env.BinarySize(d.Memory.Weights), env.BinarySize(d.Memory.KV), env.BinarySize(d.Memory.Scratch))
	}
}

// besides says what a tower or an encoder takes beside the model.
func (t *planText) besides(w io.Writer) {
	v, who, what := &t.plan.Besides, "tower that sees", "pictures"
	if v.Weights == 0 {
		return
	}
	if t.plan.Info.Program.Hears {
		who, what = "encoder that reads", "prompts"
	}
	fmt.Fprintf(w, "The %s %s takes memory as well: weights %s", who, what, env.BinarySize(v.Weights))
	if t.ram > 0 {
		fmt.Fprint(w, " (of --ram)")
	}
	fmt.Fprintf(w, ", rows of %s up to %s.\n", what, env.BinarySize(v.Scratch))
}

const barColumns = 60

// bar draws how memory is divided.
func (t *planText) bar(w io.Writer) {
	p := t.plan
	slots, weights, host := t.slots(), p.Memory.Weights, p.Model.Host()
	behind := env.BinarySize(host.Weights) + " wait for " + t.beyond()
	if p.Model.Divided() {
		slots = 0 // they are there
		behind = fmt.Sprintf("%s of weights, %s of KV cache", env.BinarySize(host.Weights), env.BinarySize(host.KV))
	}
	shares := []struct {
		sign  string
		name  string
		bytes int64
	}{
		{"█", "resident weights", weights - slots}, {"▓", "slots", slots}, {"▒", "slabs", p.Slabs},
		{"░", t.cache(), p.Memory.KV}, {"·", "scratch", p.Memory.Scratch},
	}
	memory, bounds := "memory", "; --ram bounds the weights, slots and slabs"
	if p.Apart {
		memory, bounds = "GPU   ", "; --vram bounds the weights and slots"
		if t.away() {
			memory = "others"
		}
		shares[2].bytes = 0
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
			fmt.Fprintf(&legend, "  %s %s %s\n", s.sign, env.BinarySize(s.bytes), s.name)
		}
	}
	fmt.Fprintf(w, "%s %s\n", memory, bar.String())
	fmt.Fprint(w, legend.String())
	fmt.Fprintf(w, "  = %s of %s available", env.BinarySize(total), env.BinarySize(p.Available))
	if t.ram > 0 && !p.Apart || t.vram > 0 {
		fmt.Fprint(w, bounds)
	}
	if fmt.Fprint(w, "\n"); p.Apart && host.Weights > 0 {
		fmt.Fprintf(w, "memory: %s, %s of slabs", behind, env.BinarySize(p.Slabs))
		if t.ram > 0 {
			fmt.Fprint(w, "; --ram bounds weights")
		}
		fmt.Fprintln(w)
	}
	if host.Spilled > 0 {
		fmt.Fprintf(w, "memory: %s for what the KV cache has no room for (--kv-host)\n", env.BinarySize(host.Spilled))
	}
	fmt.Fprintln(w)
}

// cache describes the KV cache in a line.
func (t *planText) cache() string {
	kv := &t.plan.Info.KV
	return fmt.Sprintf("KV cache, %s a token: %s, %.4g and %.4g bits", env.BinarySize(kv.Bytes), kv.Type, kv.BitsK, kv.BitsV)
}

// slots is the bytes that groups share.
func (t *planText) slots() (bytes int64) {
	m := &t.plan.Model
	for _, s := range m.Layout.Slots {
		if largest := int64(0); len(s) > 1 {
			for _, g := range s {
				largest = max(largest, t.plan.Traits.RoomFor(t.plan.Info.Program, &m.Homes[g].Group, true))
			}
			bytes += largest
		}
	}
	return bytes
}

// speed prints the expected speeds.
func (t *planText) speed(w io.Writer) error {
	x := &t.expected
	fmt.Fprintf(w, "expected: %s tokens/s of answers (%s at once)\n", env.TokensRate(x.Decode), env.Count(t.sequences, "sequence"))
	if x.Prefill > 0 {
		fmt.Fprintf(w, "of prompts: %s tokens/s at the beginning, %s at the end of the context\n", env.TokensRate(x.Prefill),
			env.TokensRate(t.atEnd))
	}
	if x.First > 0 {
		fmt.Fprintf(w, "the first %d tokens from cold: %s tokens/s; %s are read once\n", place.FirstTokens,
			env.TokensRate(x.First), env.BinarySize(int64(x.Fill)))
	}
	if x.Copied > 0 {
		fmt.Fprintf(w, "copied to the GPU for each token: %s\n", env.BinarySize(int64(x.Copied)))
	}
	if x.Streamed > 0 {
		fmt.Fprintf(w, "read from disk for each token: %s\n", env.BinarySize(int64(x.Streamed)))
	}
	if x.Hits < 1 {
		fmt.Fprintf(w, "experts found in memory: %.0f %%, if all are chosen alike (most models favour some)\n", 100*x.Hits)
	}
	t.network(w)
	s := &t.measured
	if d, apart := s.Devices[t.device]; apart && !t.away() {
		fmt.Fprintf(w, "measured: copies to the GPU %s, its memory %s\n", env.PerSecond(d.Bus), env.PerSecond(d.Memory))
	}
	_, err := fmt.Fprintf(w, "measured %s: disk %s, memory %s (again: doctor --probe)\n",
		s.Measured.Format("2006-01-02"), env.PerSecond(s.Disk), env.PerSecond(s.Memory))
	return err
}
