package replay

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/place/shelf"
)

// Prefetch says what is read before it is known to be needed.
type Prefetch uint8

const (
	// None: experts are read when their router has chosen them.
	None Prefetch = iota + 1
	// Predicted: while the disk is idle, experts of the next layer that are likely to be chosen, see predictor.
	Predicted
	// Oracle: while the disk is idle, experts of the next layer that will be chosen.
	Oracle
)

var prefetchNames = [...]string{None: "none", Predicted: "ours", Oracle: "oracle"}

func (p Prefetch) String() string { return prefetchNames[p] }

// ParsePrefetch finds one by its name.
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
	Policy   shelf.Kind
	Prefetch Prefetch
	Slots    int   // of each layer; 0: as the budget has it
	Weights  int64 // bytes; 0: everything is resident, but for what Slots says
	Disk     float64
	Memory   float64 // bytes a second that are computed from
}

// Result is what came of it.
type Result struct {
	Hits    int     // uses of experts that found them there, or on their way
	Misses  int     // that had to ask for them
	Bytes   int64   // read from disk
	Waited  float64 // seconds that computing waited for the disk
	Seconds float64
	Tokens  float64 // a second
}

// replay is one under way. Times are seconds from its beginning.
type replay struct {
	Setting
	trace  *Trace
	policy *shelf.Policy
	layers []layer
	share  *place.Share
	now    float64
	disk   float64 // when it has read what it was asked for
	ring   float64 // when it has read the next layer's dense weights
	dense  float64 // how long a layer's dense weights are computed from
	result Result
	guess  *predictor
	among  []int32 // scratch
}

// layer is what is in the slots of one.
type layer struct {
	there []bool
	lands []float64 // by expert that is there: when it has been read
	count int
	slots int
	bytes float64 // of an expert
}

// Run replays a trace. The same trace and setting give the same result.
func Run(t *Trace, s Setting) (*Result, error) {
	share, err := t.Sizes.Share(s.Weights)
	if err != nil {
		return nil, err
	}
	r := &replay{Setting: s, trace: t, share: share, layers: make([]layer, len(t.Sizes.Layers))}
	experts := make([]int, len(r.layers))
	for i, l := range t.Sizes.Layers {
		experts[i] = l.Experts
		slots := share.Slots[i]
		if s.Slots > 0 {
			slots = min(s.Slots, l.Experts)
		}
		r.layers[i] = layer{there: make([]bool, l.Experts), lands: make([]float64, l.Experts), slots: slots,
			bytes: float64(l.Bytes)}
	}
	r.policy = shelf.New(s.Policy, experts)
	if s.Policy == shelf.Belady {
		for i := range r.layers {
			uses := make([][]int32, len(t.Steps))
			for j := range t.Steps {
				uses[j] = t.Steps[j].Chosen[i]
			}
			r.policy.Foresee(i, uses)
		}
	}
	if s.Prefetch == Predicted {
		r.guess = newPredictor(experts)
	}
	for _, bytes := range t.Sizes.Dense {
		r.dense += over(float64(bytes)/float64(max(len(r.layers), 1)), s.Memory)
	}
	for i := range t.Steps {
		r.step(&t.Steps[i])
	}
	r.result.Seconds = r.now
	tokens := t.Drawn
	if tokens == 0 {
		tokens = t.Rows
	}
	r.result.Tokens = float64(tokens) / max(r.now, 1e-12)
	return &r.result, nil
}

// step goes through the layers. Dense weights are computed from and streamed evenly over them: those of a
// layer are read while the one before it is computed.
func (r *replay) step(s *Step) {
	for i := range max(len(r.layers), 1) {
		r.wait(r.ring)
		if r.share.Read > 0 {
			r.read(float64(r.share.Read)/float64(max(len(r.layers), 1)), r.now)
			r.ring = r.disk
		}
		r.now += r.dense
		if i < len(r.layers) {
			r.layer(s, i)
		}
	}
}

// layer has the experts of a layer read that are not there, and computes: first what is there.
func (r *replay) layer(s *Step, i int) {
	l, chosen := &r.layers[i], s.Chosen[i]
	r.policy.Touch(i, chosen)
	here, last := 0, r.now
	var missing []int32
	for _, e := range chosen {
		if r.guess != nil {
			r.guess.used(i, int(e))
		}
		switch {
		case !l.there[e]:
			missing = append(missing, e)
		case l.lands[e] <= r.now:
			here++
		default: // a guess that is still on its way
			last = max(last, l.lands[e])
		}
	}
	r.result.Hits += len(chosen) - len(missing)
	r.result.Misses += len(missing)
	// Of more experts than there are slots, some come when others have been computed.
	for _, e := range missing {
		r.bring(i, int(e), chosen, r.now)
		last = max(last, r.disk)
	}
	first, rest := over(float64(here)*l.bytes, r.Memory), over(float64(len(chosen)-here)*l.bytes, r.Memory)
	r.predict(s, i, max(r.now+first, last)+rest+r.dense)
	r.now += first
	r.wait(last)
	r.now += rest
}

// wait lets time pass until something is there.
func (r *replay) wait(until float64) {
	if until > r.now {
		r.result.Waited += until - r.now
		r.now = until
	}
}

// read has the disk read, after what it was asked for before.
func (r *replay) read(bytes, asked float64) {
	r.disk = max(r.disk, asked) + over(bytes, r.Disk)
	r.result.Bytes += int64(bytes)
}

// bring reads an expert into a slot. needed do not leave, unless there is nothing else.
func (r *replay) bring(i, expert int, needed []int32, asked float64) bool {
	l := &r.layers[i]
	if l.count == l.slots {
		victim, ok := r.victim(i, needed)
		if !ok {
			return false
		}
		r.policy.Leave(i, victim)
		if r.guess != nil {
			r.guess.left(i, victim)
		}
		l.there[victim] = false
		l.count--
	}
	r.read(l.bytes, asked)
	l.there[expert], l.lands[expert] = true, r.disk
	l.count++
	r.policy.Arrive(i, expert)
	return true
}

// victim is the expert that leaves: one that the step does not need, or of more experts than there are slots one
// that it has computed.
func (r *replay) victim(i int, needed []int32) (int, bool) {
	l := &r.layers[i]
	r.among = r.among[:0]
	for e, there := range l.there {
		if _, found := slices.BinarySearch(needed, int32(e)); there && !found {
			r.among = append(r.among, int32(e))
		}
	}
	if len(r.among) == 0 {
		for e, there := range l.there {
			if there {
				r.among = append(r.among, int32(e))
			}
		}
	}
	if len(r.among) == 0 {
		return 0, false
	}
	return r.policy.Victim(i, r.among), true
}

// predict reads experts of the next layer while nothing else is asked of the disk, until that layer's own router has
// chosen: what is under way then goes on.
func (r *replay) predict(s *Step, i int, chosen float64) {
	next := i + 1
	if r.guess != nil {
		r.guess.learn(s, i)
	}
	if next >= len(r.layers) || r.Prefetch == None {
		return
	}
	var likely []int32
	if r.Prefetch == Oracle {
		likely = s.Chosen[next]
	} else {
		likely = r.guess.likely(next, s.Chosen[i], r.trace.Sizes.Layers[next].Used*s.Rows)
	}
	l := &r.layers[next]
	needed := slices.Sorted(slices.Values(likely))
	for _, e := range likely {
		if r.disk >= chosen {
			return
		}
		if l.there[e] || r.guess != nil && !r.guess.trusted() {
			continue
		}
		if r.bring(next, int(e), needed, r.now) && r.guess != nil {
			r.guess.guessed(next, int(e))
		}
	}
}

func over(amount, speed float64) float64 {
	if speed <= 0 {
		return 0
	}
	return amount / speed
}
