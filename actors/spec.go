package actors

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/kv"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/modelfile"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/prompt"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/speculate"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// spec is what a model's file and its plan say of it, known before any of its actors runs. Nobody changes it.
// Wide: all that is known of a model is found here, and nothing changes it.
type spec struct {
	info     Info
	file     *gguf.File
	lends    Lent // what other machines may read of it
	bound    *ir.Bound
	vocab    *token.Vocab
	writer   prompt.Writer
	room     prompt.Room
	settings modelfile.Settings
	plain    *tools.Syntax  // the writer's syntax, without thoughts
	marks    map[int32]bool // control tokens with which the model writes calls
	plan     place.Model
	adapters *adapters // that it knows; nil: it takes none
	kept     Kept
	news     func([]kv.News) // nil: nobody listens
	silent   []bool          // by segment: its device does not report when it ran; nil: one device computes all
	layout   backend.Config  // what the device compiles
	limits   batch.Limits
	guesses  bool                           // tokens of answers are guessed; see Model.Speculate
	drafted  bool                           // by a draft model, too
	textless bool                           // and only by that
	taps     []int                          // segments after which hidden states are taken for that; nil: it takes none
	head     bool                           // it takes hidden states of another model
	among    int                            // most tokens (top-k) that a draw on the device may choose among
	trie     func() *grammar.Trie           // of vocab; made when the first request with a grammar comes
	calls    func() *grammar.Trie           // the same, with marks
	about    func() (*meta.Map, quant.Type) // see Header: found when the first client asks
	eye      *eye                           // nil: it does not see
	ear      *ear                           // nil: it reads prompts itself
	axes     bool                           // positions of pictures have several axes
}

// Info describes a model.
type Info struct {
	Name         string // as configured, else general.name, or the file's
	Architecture string
	Parameters   int64
	WeightBytes  int64 // of all weights
	Vocab        int
	Trained      int // positions the model was trained for
	Context      int // positions one request may hold here
	Sequences    int // how many are computed at once; more wait
	KV           KVInfo
	Program      *ir.Bound     // what is computed; not to be changed
	TemplateNote string        // where the chat template comes from, if not from the file; for the user
	Sampling     sample.Params // the model's own defaults, or the usual ones
	Blind        string        // why the model runs without the tower that came with it; empty: nothing was wrong
}

// KVInfo says how the KV cache stores K and V of full blocks.
type KVInfo struct {
	Type         string  // the cache's type, as --kv names it
	Bytes        int64   // bytes of one position, in all layers
	BitsK, BitsV float64 // bits of one value, scales included
}

// specOf reads all that a model's file says of it.
func specOf(m *Model) (*spec, error) {
	s := &spec{file: m.File, lends: lentBy(m.File)}
	architecture, err := m.File.Meta.String("general.architecture")
	if err == nil && arch.Guesses(architecture) && !m.File.Meta.Has("tokenizer.ggml.model") { // nobody has lent it one
		return nil, onlyGuesses(m.File.Name, architecture)
	}
	if s.vocab, err = token.New(&m.File.Meta); err != nil {
		return nil, fmt.Errorf("%s: %w", m.File.Name, err)
	}
	s.trie = sync.OnceValue(func() *grammar.Trie { return constrain.Trie(s.vocab, nil) })
	s.calls = sync.OnceValue(func() *grammar.Trie {
		if len(s.marks) == 0 {
			return s.trie()
		}
		return constrain.Trie(s.vocab, s.marks)
	})
	if s.bound, err = bind(m); err != nil {
		return nil, err
	}
	_, s.head = s.bound.Input(arch.TargetRows)
	if have, want := s.vocab.Size(), s.bound.Vocab; have > want {
		return nil, fmt.Errorf("%s: the vocabulary has %d tokens, but the model computes logits for %d: convert it again",
			m.File.Name, have, want)
	}
	s.info = infoOf(m, s.bound)
	if m.adapted() {
		s.adapters = &adapters{program: s.bound.Program, most: m.adapterMemory()}
		if err := s.adapters.keep(m.Own); err != nil {
			return nil, fmt.Errorf("%s: %w", m.File.Name, err)
		}
	}
	s.about = sync.OnceValues(func() (*meta.Map, quant.Type) { return withoutLists(&s.file.Meta), mostOf(s.bound) })
	if err := s.describe(); err != nil {
		return nil, err
	}
	s.axes = slices.ContainsFunc(s.bound.Segments, func(g ir.Segment) bool {
		return slices.ContainsFunc(g.Nodes, func(n ir.Node) bool { return n.Op == ir.RoPE && n.RoPE.Axes != nil })
	})
	if s.ear, err = newEar(m.File, s.bound.Program); err != nil {
		return nil, err
	}
	s.eye, err = newEye(m, s.bound.Program, s.vocab)
	switch {
	case err != nil && m.TowerIfFits:
		s.info.Blind, err, m.Tower = err.Error(), m.Tower.Close(), nil
	case err == nil && s.eye != nil:
		s.writer.Eyes = s.eye.prompts
	}
	return s, err
}

// bind builds the model's program and finds its weights in the file.
func bind(m *Model) (*ir.Bound, error) {
	f := m.File
	has := func(name string) bool { _, ok := f.Tensor(name); return ok }
	known, err := knownTokens(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	program, err := arch.Record(&f.Meta, has,
		arch.Options{Context: m.Context, Adapted: m.adapted(), Head: m.head, Known: known})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	tensors := make([]ir.Tensor, len(f.Tensors))
	for i, t := range f.Tensors {
		tensors[i] = ir.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape}
	}
	bound, err := ir.Bind(m.KV.Sealing(program), tensors)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return bound, nil
}

// mostListed is how many values a list of settings may have, such as texts to stop at.
const mostListed = 64

// withoutLists returns metadata with nil in place of its lists, but for short ones of texts.
func withoutLists(m *meta.Map) *meta.Map {
	all := &meta.Map{}
	for _, key := range m.Keys() {
		switch v, _ := m.Get(key); v := v.(type) {
		case bool, string, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32, float64:
			all.Set(key, v)
		case []string:
			all.Set(key, nil)
			if len(v) <= mostListed {
				all.Set(key, v)
			}
		default:
			all.Set(key, nil)
		}
	}
	return all
}

// mostOf is the type with most bytes of a model's weights.
func mostOf(bound *ir.Bound) quant.Type {
	bytes := map[quant.Type]int64{}
	for ref, t := range bound.Types {
		bytes[t] += bound.Size(ir.Ref(ref))
	}
	return slices.MaxFunc(bound.Types, func(a, b quant.Type) int { return int(min(max(bytes[a]-bytes[b], -1), 1)) })
}

// infoOf collects what users are told about a model before it is planned.
func infoOf(m *Model, bound *ir.Bound) Info {
	i := Info{
		Name: m.File.Name, Architecture: bound.Arch, Vocab: bound.Vocab, Trained: bound.Context,
		Sampling: sample.Recommended(&m.File.Meta), Program: bound,
	}
	if own, err := m.File.Meta.String("general.name"); err == nil && own != "" {
		i.Name = own
	}
	if m.Name != "" {
		i.Name = m.Name
	}
	for ref, w := range bound.Weights {
		i.Parameters += int64(w.Rows) * int64(w.Cols)
		i.WeightBytes += bound.Size(ir.Ref(ref))
	}
	return i
}

// embeds says whether a program ends in vectors of texts; else it generates text.
func embeds(bound *ir.Bound) bool {
	return bound.Segments[len(bound.Segments)-1].Kind == ir.SegPool
}

// describe finds the model's chat template, and what stands beside it.
func (s *spec) describe() (err error) {
	m := &s.file.Meta
	source, err := chat.Own(m)
	if err != nil {
		return fmt.Errorf("%s: %w", s.file.Name, err)
	}
	s.writer.Template, s.info.TemplateNote, err = chat.ForModel(source, s.bound.Arch, func(text string) bool {
		_, ok := s.vocab.Lookup(text)
		return ok
	})
	if err != nil {
		return fmt.Errorf("%s: tokenizer.chat_template: %w", s.file.Name, err)
	}
	s.learn(source)
	s.settings = modelfile.Of(m)
	s.writer.Vocab, s.writer.System = s.vocab, s.settings.System
	if s.settings.Messages != "" {
		if s.writer.Standing, err = chat.ParseMessages(s.settings.Messages, math.MaxInt, nil); err != nil {
			return fmt.Errorf("%s: the messages that go before all others: %w", s.file.Name, err)
		}
	}
	return nil
}

// learn finds out how the model marks thoughts and calls in its answers, by rendering the template.
func (s *spec) learn(source string) {
	s.writer.Syntax = tools.Shown(source, s.writer.Template.RenderConversation)
	s.plain = s.writer.Syntax.Thoughtless()
	var ends []string
	for _, id := range s.vocab.EOG() {
		ends = append(ends, string(s.vocab.Piece(id)))
	}
	s.writer.Calls = s.writer.Syntax.Form(source, s.writer.Template.RenderConversation, ends)
	s.marks = map[int32]bool{}
	for id := range int32(s.vocab.Size()) {
		if s.vocab.IsControl(id) && !s.vocab.IsEOG(id) && s.writer.Syntax.Mentions(string(s.vocab.Piece(id))) {
			s.marks[id] = true
		}
	}
}

// parser returns a parser of answers. Without thoughts, those are parsed as text.
func (s *spec) parser(thoughts bool, tail string, set *tools.Set) *tools.Parser {
	syntax := s.writer.Syntax
	if !thoughts {
		syntax = s.plain
	}
	return syntax.Parser(tail, set)
}

// mostProposed is how many tokens of a sequence are proposed in a step at most.
const mostProposed = speculate.MostGuesses

// settle sets what follows from the model's plan.
func (s *spec) settle(p *place.Model, m *Model, traits backend.Traits) {
	s.plan, s.layout, s.bound.Piece, s.kept = *p, p.Layout, p.Piece, m.Kept
	s.news = m.News
	s.layout.Flight = traits.Flight
	switch {
	case m.NoRepack:
		s.layout.Weights = s.inPlace()
	case s.layout.Slots != nil: // tables whose groups are streamed or stay in the file are looked up there
		s.layout.Weights = backend.Uploaded{Tables: s.tables()}
	}
	s.limits = batch.Limits{Seqs: p.Sequences, Rows: p.Rows, Wanted: p.Wanted, Beside: p.Beside,
		Proposed: mostProposed}
	s.limits.Pass = s.pass()
	s.limits.Draws = traits.Draws > 0 && s.layout.Devices == nil && s.bound.Known == nil
	s.limits.Whole = s.bound.Whole
	s.limits.Apart = traits.Apart != nil && traits.Apart(s.bound)
	if len(s.bound.States) > 0 {
		s.limits.Redo = backend.BlockSize
	}
	s.guesses = m.Speculate && !s.bound.Whole
	s.drafted, s.textless = m.Draft != nil, m.DraftOnly
	s.among = traits.Draws
	for segment := range s.layout.Devices {
		s.silent = append(s.silent, !traits.Of(&s.layout.Layout, segment).Clock)
	}
	s.info.Sequences = p.Sequences
	s.room = prompt.Room{Vocab: s.bound.Vocab, Context: p.Context, Text: s.text()}
	s.info.Context = p.Context
	k, v := s.layout.KV.Shares(s.bound.Program)
	s.info.KV = KVInfo{Type: s.layout.KV.String(), Bytes: s.layout.KV.BlockBytes(s.bound.Program) / backend.BlockSize,
		BitsK: k.Bits(), BitsV: v.Bits()}
}

// rowCosts estimates, in bytes read, what rows of a step cost before any step was measured: computing a row costs a
// tenth of reading the weights that it uses from memory, and a byte that is streamed takes as long as twenty that are
// not.
func (s *spec) rowCosts() (c speculate.Shape) {
	for ref, w := range s.bound.Weights {
		bytes := float64(s.bound.Size(ir.Ref(ref)))
		switch {
		case w.Use == ir.Table:
		case w.Experts > 0:
			c.Experts, c.Count = c.Experts+bytes, w.Experts
		default:
			c.Fixed += bytes
		}
	}
	for i := range s.bound.Segments {
		for k := range s.bound.Segments[i].Nodes {
			if e := s.bound.Segments[i].Nodes[k].Experts; e != nil {
				c.Used = e.Used
			}
		}
	}
	c.Row = (c.Fixed + c.Experts*float64(c.Used)/float64(max(c.Count, 1))) / 10
	if s.streams() {
		c.Row /= slower
		if c.Count > 0 { // the experts are what is streamed
			c.Fixed /= slower
		}
	}
	return c
}

// pass is how many positions a row attends to in the time in which a step of one row reads the weights, by their bytes.
// Positions behind windows do not count, since a row never attends to more of them; 0: there are no others.
func (s *spec) pass() int {
	each := 0.0
	for i, l := range s.bound.KV {
		if class := s.bound.Classes[l.Class]; class.Window == 0 && !class.State {
			each += float64(s.layout.KV.Of(i, class).BlockBytes(l)) / backend.BlockSize
		}
	}
	if each == 0 {
		return 0
	}
	c := s.rowCosts()
	bytes := c.Cost(1) - c.Row
	if s.streams() {
		bytes *= slower
	}
	return max(int(bytes/each), 1)
}

// slower is how many bytes in memory are read while one is streamed.
const slower = 20

// draftCosts estimates what a draft model's guess costs, and what it costs it to read a token, in steps of one row of
// this model.
func (s *spec) draftCosts(draft *spec) (each, row float64) {
	one, own := draft.rowCosts(), s.rowCosts()
	unit := own.Cost(1)
	if s.streams() {
		unit *= slower
	}
	return one.Cost(1) / unit, one.Row / unit
}

// text is how many tokens a text that is scored or embedded may have.
func (s *spec) text() int {
	most := s.plan.Context
	if s.bound.Whole {
		most = min(most, s.limits.Rows, s.limits.Wanted)
	}
	if s.bound.Positions > 0 {
		most = min(most, s.bound.Positions)
	}
	return most
}

// untold says whether a segment is computed by a device that does not report when, beside one that does.
func (s *spec) untold(segment int) bool { return s.silent != nil && s.silent[segment] }

// streams says whether groups of weights share slots.
func (s *spec) streams() bool { return s.plan.Streams() }

// sharedSlots is how many slots groups of weights share.
func (s *spec) sharedSlots() int {
	p := &s.plan
	n := len(p.Ring.Slots)
	for i := range p.Shelves {
		n += len(p.Shelves[i].Slots)
	}
	return n
}

// inPlace returns the weights in the mapped file, by Ref.
func (s *spec) inPlace() (all backend.InPlace) {
	for _, i := range s.bound.Tensors {
		all = append(all, s.file.Bytes(&s.file.Tensors[i]))
	}
	return all
}

// tables returns the weights in which rows are looked up (embeddings), by Ref; nil for others.
func (s *spec) tables() [][]byte {
	all := make([][]byte, len(s.bound.Weights))
	for r, i := range s.bound.Tensors {
		if s.bound.Weights[r].Use&ir.Table != 0 {
			all[r] = s.file.Bytes(&s.file.Tensors[i])
		}
	}
	return all
}

// classes returns the sizes of the KV cache's classes.
func (s *spec) classes() (all []kv.Class) {
	for i, class := range s.bound.Classes {
		x := kv.Class{Blocks: s.layout.Blocks[i], Window: backend.Window(class), Chunked: class.Chunked}
		if s.plan.Spilled != nil {
			x.Host = s.plan.Spilled[i]
		}
		if s.plan.Kept != nil {
			x.Disk = s.plan.Kept[i]
		}
		all = append(all, x)
	}
	return all
}

// bytes is how many bytes of weights are brought once. Streamed groups do not count.
func (s *spec) bytes() (total int64) {
	for _, h := range s.plan.Homes {
		if h.Brought() {
			total += h.Group.Bytes
		}
	}
	return total
}

// draw says how the token at a position is drawn: by the device, or, if that cannot, by the host.
func (s *spec) draw(p *sample.Params, position int) backend.Draw {
	d := p.Draw(position)
	if d.Temp > 0 && (d.TopK == 0 || int(d.TopK) > s.among || s.among < 2) {
		return backend.Draw{Host: true}
	}
	return d
}
