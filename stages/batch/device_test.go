package batch

import (
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/kv"
)

// simStep is a step in flight.
type simStep struct {
	step  backend.Step
	parts []Part
	ran   bool
	drawn []int32 // by wanted row
}

// owner is the sequence that a wanted row belongs to.
func (f *simStep) owner(wanted int) *Seq {
	for _, p := range f.parts {
		if wanted < p.Wanted {
			return p.Seq
		}
		wanted -= p.Wanted
	}
	return nil
}

// simDevice remembers in each block the tokens of its positions, and reads what a row sees through the tables: a block
// that was given to somebody else too early gives a wrong token. Of states it has in each block a hash of all tokens up
// to some position, which a row can only go on from if it is the next one's. A step of prompts leaves other numbers.
type simDevice struct {
	t       require.TestingT
	classes []kv.Class
	blocks  [][][backend.BlockSize]int32 // by class
	states  [][]simState                 // by class; nil: it has none
	drawn   []int32                      // of the step before
}

func newSimDevice(t require.TestingT, classes []kv.Class) *simDevice {
	d := &simDevice{t: t, classes: classes}
	for _, class := range classes {
		d.blocks = append(d.blocks, make([][backend.BlockSize]int32, class.Blocks))
		d.states = append(d.states, nil)
		if isState(class) {
			d.states[len(d.states)-1] = make([]simState, class.Blocks)
		}
	}
	return d
}

// simState is the hash of the first n tokens.
type simState struct {
	hash uint32
	n    int
}

// isState: the sim takes classes of this window for those of states.
func isState(class kv.Class) bool { return class.Window == backend.Window(ir.Class{State: true}) }

// goOn takes a token into the state of a class.
func (d *simDevice) goOn(class int, span *backend.Span, pos int, token int32) {
	slot := func(pos int) *simState { return &d.states[class][span.Tables[class].At(pos/backend.BlockSize)] }
	before := simState{hash: emptyHistory}
	if pos > 0 {
		before = *slot(pos - 1)
	}
	if before.n != pos {
		require.FailNow(d.t, "another's state", "position %d goes on from one after %d tokens", pos, before.n)
	}
	*slot(pos) = simState{hashed(before.hash, token), pos + 1}
}

// seen is the first position that a row at pos sees.
func seen(class kv.Class, pos int) int {
	if class.Window == 0 {
		return 0
	}
	return max(0, pos-class.Window+1)
}

// run executes the steps up to f, in order: as late as a device may.
func (d *simDevice) run(f *simStep, flying []*simStep) {
	for _, g := range flying {
		if !g.ran {
			d.execute(g)
		}
		if g == f {
			return
		}
	}
}

func (d *simDevice) execute(f *simStep) {
	f.ran, f.drawn = true, nil
	for i := range f.step.Spans {
		span := &f.step.Spans[i]
		for r := range span.Rows {
			token := f.step.Tokens[span.Row+r]
			if token < 0 {
				token = d.drawn[-1-token]
			}
			if f.step.Prompt {
				token = read(token)
			}
			for c := range d.classes {
				if d.states[c] != nil && r >= span.Rows-span.Proposed {
					continue
				} else if d.states[c] != nil {
					d.goOn(c, span, span.Pos+r, token)
				} else {
					*d.at(c, span, span.Pos+r) = token
				}
			}
		}
		for r := span.Rows - f.parts[i].Wanted; r < span.Rows; r++ {
			history := d.history(span, span.Pos+r)
			f.drawn = append(f.drawn, next(history))
			d.checkStates(span, r, history)
		}
	}
	d.drawn = f.drawn
}

// read is what a step of prompts makes of a token.
func read(token int32) int32 { return token | 1<<20 }

func (d *simDevice) at(class int, span *backend.Span, pos int) *int32 {
	return &d.blocks[class][span.Tables[class].At(pos/backend.BlockSize)][pos%backend.BlockSize]
}

// checkStates: after the last row of a span, states are those of its history. Proposed rows leave none.
func (d *simDevice) checkStates(span *backend.Span, row int, history []int32) {
	for c, states := range d.states {
		if states == nil || row != span.Rows-span.Proposed-1 {
			continue
		}
		want := simState{hash: emptyHistory, n: len(history)}
		for _, token := range history {
			want.hash = hashed(want.hash, token)
		}
		got := states[span.Tables[c].At((span.Pos+row)/backend.BlockSize)]
		if got != want {
			require.FailNow(d.t, "another's state", "after %d tokens: %v, want %v", len(history), got, want)
		}
	}
}

// history is what the last class, which keeps all, has up to pos. The others have the same, as far as they see.
func (d *simDevice) history(span *backend.Span, pos int) []int32 {
	all := make([]int32, pos+1)
	for c := len(d.classes) - 1; c >= 0; c-- {
		for p := seen(d.classes[c], pos); p <= pos && d.states[c] == nil; p++ {
			token := *d.at(c, span, p)
			if c == len(d.classes)-1 {
				all[p] = token
			}
			if token != all[p] {
				require.FailNow(d.t, "another's block", "position %d in class %d is %d, want %d", p, c, token, all[p])
			}
		}
	}
	return all
}
