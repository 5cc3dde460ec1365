package replay

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/place/expertcache"
	"github.com/sluice-ai/sluice/stages/place/predict"
)

// Prefetch says what is read before it is known to be needed.
type Prefetch uint8

const (
	// None: experts are read when their router has chosen them.
	None Prefetch = iota + 1
	// Predicted: while the disk is idle, experts that are likely to be chosen, see foresee.
	Predicted
	// Oracle: while the disk is idle, experts of the next layer that will be chosen; at the begin of a step, of the first.
	Oracle
)

var prefetchNames = [...]string{None: "none", Predicted: "ours", Oracle: "oracle"}

func (p Prefetch) String() string { return prefetchNames[p] }

// ParsePrefetch finds a kind of prefetching by its name.
func ParsePrefetch(name string) (Prefetch, error) {
	for p := None; int(p) < len(prefetchNames); p++ {
		if prefetchNames[p] == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("prefetch %q: want none, ours or oracle", name)
}

// Setting is what a trace is replayed with.
type Setting struct {
	Policy   expertcache.Kind
	Prefetch Prefetch
	Slots    int     // of each layer; 0: as the budget has it
	Weights  int64   // bytes; 0: everything is resident, but for what Slots says
	Disk     float64 // bytes a second
	Memory   float64 // bytes a second that are computed from

	// Kept is how many experts of each layer wait in the program's memory, to be copied to slots on a device by Bus,
	// in bytes a second. The others are on disk, and their prices are those of a plan (place.Price). 0: all are on
	// disk.
	Kept int
	Bus  float64
	Lead float64 // seconds that the drive has to fill slots before the first step
	Fill bool    // the drive fills free slots before the first step, and whenever it has nothing else to do

	blind bool // the policy is told no prices
}

// Result is the outcome of a replay.
type Result struct {
	Hits    int     // uses of experts that were there, or on their way
	Misses  int     // uses of experts that had to be asked for
	Bytes   int64   // read from disk
	Copied  int64   // copied by Bus
	Waited  float64 // seconds that computing waited for disk or bus
	Seconds float64
	Tokens  float64 // a second
}

// replay is one under way. Times are seconds from its beginning.
// Wide: it is a machine in small: drive, bus, slots and a step.
type replay struct {
	Setting
	trace          *Trace
	policy         *expertcache.Policy
	layers         []layer
	share          *place.Share
	now            float64
	drive, bus     drive
	ring           *read   // of the next layer's dense weights; nil: none are streamed
	dense          float64 // how long a layer's dense weights are computed from
	result         Result
	guess          *predict.Predictor // of Predicted
	at             *Step
	next           int     // the layer for which experts are guessed
	among, missing []int32 // scratch
}

// layer is the slots of one layer.
type layer struct {
	reads   []*read // by expert; nil: it has no slot
	guessed []bool  // by expert: its slot is a guess that was not used yet
	there   []bool  // scratch
	count   int
	slots   int
	bytes   float64 // of an expert
}

// Run replays a trace. The same trace and setting give the same result.
func Run(t *Trace, s Setting) (*Result, error) {
	share, err := t.Sizes.Share(s.Weights)
	if err != nil {
		return nil, err
	}
	if s.Kept > 0 && s.Prefetch != None {
		return nil, errors.New("experts that wait in memory: what is read ahead beside is not replayed")
	}
	r := newReplay(t, s, share)
	if s.Lead > 0 && len(t.Steps) > 0 {
		r.now, r.at = s.Lead, &t.Steps[0]
		r.drive.work(r.now)
	}
	for i := range t.Steps {
		r.step(&t.Steps[i])
	}
	r.result.Seconds = r.now - s.Lead
	tokens := t.Drawn
	if tokens == 0 {
		tokens = t.Rows
	}
	r.result.Tokens = float64(tokens) / max(r.result.Seconds, 1e-12)
	return &r.result, nil
}

func newReplay(t *Trace, s Setting, share *place.Share) *replay {
	r := &replay{Setting: s, trace: t, share: share, layers: make([]layer, len(t.Sizes.Layers))}
	r.drive = drive{speed: s.Disk, likely: r.likely}
	r.bus = drive{speed: s.Bus, likely: func() *read { return nil }}
	experts, foreseen := make([]int, len(r.layers)), make([]predict.Layer, len(r.layers))
	for i, l := range t.Sizes.Layers {
		experts[i], foreseen[i] = l.Experts, predict.Layer{Experts: l.Experts, Used: l.Used}
		slots := share.Slots[i]
		if s.Slots > 0 {
			slots = min(s.Slots, l.Experts)
		}
		r.layers[i] = layer{reads: make([]*read, l.Experts), guessed: make([]bool, l.Experts),
			there: make([]bool, l.Experts), slots: slots, bytes: float64(l.Bytes)}
	}
	r.policy = expertcache.New(s.Policy, experts)
	r.price()
	if s.Policy == expertcache.Belady {
		for i := range r.layers {
			uses := make([][]int32, len(t.Steps))
			for j := range t.Steps {
				uses[j] = t.Steps[j].Chosen[i]
			}
			r.policy.Foresee(i, uses)
		}
	}
	if s.Prefetch == Predicted {
		r.guess = predict.New(foreseen)
	}
	for _, bytes := range t.Sizes.Dense {
		r.dense += over(float64(bytes)/float64(max(len(r.layers), 1)), s.Memory)
	}
	return r
}

// price tells the policy what it costs to bring each expert, where some wait in memory.
func (r *replay) price() {
	if r.Kept == 0 || r.blind {
		return
	}
	for i := range r.layers {
		prices := make([]float64, len(r.layers[i].reads))
		for e := range prices {
			prices[e] = place.Price(r.kept(e))
		}
		r.policy.Price(i, prices)
	}
}

// kept says whether an expert waits in memory.
func (r *replay) kept(expert int) bool { return expert < r.Kept }

// step goes through the layers. Dense weights are computed from and streamed evenly over them: those of a
// layer are read while the one before it is computed.
func (r *replay) step(s *Step) {
	r.begins(s)
	for i := range max(len(r.layers), 1) {
		if r.ring != nil {
			r.wait(r.drive.finish(r.ring))
		}
		if r.share.Read > 0 {
			r.ring = r.read(newRead(-1, -1, float64(r.share.Read)/float64(max(len(r.layers), 1))))
		}
		r.now += r.dense
		if i < len(r.layers) {
			r.layer(s, i)
		}
	}
}

// layer runs one layer: the experts that are not there are read, and those that are there are computed first.
func (r *replay) layer(s *Step, i int) {
	r.drive.work(r.now)
	l, chosen := &r.layers[i], s.Chosen[i]
	r.chose(i)
	r.policy.Touch(i, chosen)
	here, missing := 0, r.missing[:0]
	for _, e := range chosen {
		if l.guessed[e] && r.guess != nil {
			r.guess.Right()
		}
		l.guessed[e] = false
		switch x := l.reads[e]; {
		case x == nil:
			missing = append(missing, e)
		case x.landed:
			here++
		default: // a guess that is still on its way
			r.drive.need(x)
		}
	}
	r.missing = missing
	r.result.Hits += len(chosen) - len(missing)
	r.result.Misses += len(missing)
	// Of more experts than there are slots, some come when others have been computed.
	for _, e := range missing {
		switch x := r.bring(i, int(e), func(e int32) bool { return in(chosen, e) }); {
		case x == nil:
		case r.kept(int(e)):
			r.result.Copied += int64(x.left)
			r.bus.ask(x, r.now)
		default:
			r.read(x)
		}
	}
	r.now += over(float64(here)*l.bytes, r.Memory)
	r.drive.work(r.now)
	r.bus.work(r.now)
	for _, e := range chosen {
		switch x := l.reads[e]; {
		case x == nil || x.landed:
		case r.kept(int(e)):
			r.wait(r.bus.finish(x))
		default:
			r.wait(r.drive.finish(x))
		}
	}
	r.now += over(float64(len(chosen)-here)*l.bytes, r.Memory)
	r.drive.work(r.now)
	r.scores(i+1, true)
}

// wait lets time pass until an expert, or a dense group, is there.
func (r *replay) wait(until float64) {
	if until > r.now {
		r.result.Waited += until - r.now
		r.now = until
	}
}

// read has the drive read, after what it was asked for before.
func (r *replay) read(x *read) *read {
	r.result.Bytes += int64(x.left)
	return r.drive.ask(x, r.now)
}

// bring finds a slot for an expert. Experts that are needed leave only if there is nothing else to leave; nil: no
// expert may leave.
func (r *replay) bring(i, expert int, needed func(e int32) bool) *read {
	l := &r.layers[i]
	if l.count == l.slots {
		victim, ok := r.victim(i, needed)
		if !ok {
			return nil
		}
		r.policy.Leave(i, victim)
		l.reads[victim], l.guessed[victim] = nil, false
		l.count--
	}
	l.reads[expert] = newRead(i, expert, l.bytes)
	l.count++
	r.policy.Arrive(i, expert)
	return l.reads[expert]
}

func in(ascending []int32, e int32) bool {
	_, found := slices.BinarySearch(ascending, e)
	return found
}

// victim is the expert that leaves: one that the step does not need, or of more experts than there are slots one
// that it has computed. What is on its way stays.
func (r *replay) victim(i int, needed func(e int32) bool) (int, bool) {
	l := &r.layers[i]
	r.among = r.among[:0]
	for e, x := range l.reads {
		if x != nil && x != r.drive.guess && !needed(int32(e)) {
			r.among = append(r.among, int32(e))
		}
	}
	if len(r.among) == 0 {
		for e, x := range l.reads {
			if x != nil && x != r.drive.guess {
				r.among = append(r.among, int32(e))
			}
		}
	}
	if len(r.among) == 0 {
		return 0, false
	}
	return r.policy.Victim(i, r.among), true
}

func over(amount, speed float64) float64 {
	if speed <= 0 {
		return 0
	}
	return amount / speed
}
