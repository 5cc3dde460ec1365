package actors

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/model/lora"
)

// Adapter is an adapter that requests may name.
type Adapter struct {
	Name string
	Path string // of its file or folder, for those who list adapters
	Open func(p *ir.Program) (*lora.Loaded, error)
}

// Adapting says which adapter changes a request's answer, and by how much.
type Adapting struct {
	Name  string
	Scale float32
}

// ErrAdapters is wrapped by the error of a request for which there is no room among the adapters.
var ErrAdapters = errors.New("the adapters in use take all of their memory: try again later")

var errNoAdapters = refusal.Of("the model takes no adapters: it was started without")

const mostAdapters = 4096 // that a model knows

// adapters are those that a model knows. As many are in memory as fit the budget; the one that was not used for longest
// leaves for another. One that a request uses does not leave.
type adapters struct {
	program *ir.Program
	most    int64   // bytes
	own     []taken // that all requests have; they stay

	mu    sync.Mutex
	known []*adapter // by id; nil: it was taken away
	bytes int64      // of those in memory
	uses  uint64
}

// adapter is one of them. Its memory is freed when nobody refers to it any more: steps in flight may outlast requests.
type adapter struct {
	Adapter
	scale float32 // in requests that do not name adapters

	loading sync.Mutex
	loaded  *lora.Loaded // nil: it is not in memory
	open    int          // requests that use it
	used    uint64
}

func (s *adapters) find(name string) *adapter {
	i := slices.IndexFunc(s.known, func(a *adapter) bool { return a != nil && a.Name == name })
	if i < 0 {
		return nil
	}
	return s.known[i]
}

// CheckAdapterName refuses a name that cannot stand behind a model's and a plus sign, or that would be a path.
func CheckAdapterName(name string) error {
	if name == "" || len(name) > 200 || !utf8.ValidString(name) || strings.ContainsAny(name, `/\+`) {
		return refusal.Of("%.80q is no name of an adapter: want one without / and +", name)
	}
	return nil
}

// add makes an adapter known. It is loaded when it is first asked for.
func (s *adapters) add(a Adapter) error {
	if err := CheckAdapterName(a.Name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.find(a.Name) != nil:
		return refusal.Of("there is an adapter called %q already: unload it first", a.Name)
	case len(s.known) == mostAdapters:
		return refusal.Of("%d adapters were made known, and no more can be", mostAdapters)
	}
	s.known = append(s.known, &adapter{Adapter: a})
	return nil
}

// keep loads adapters that all requests have, and which nobody names or takes away.
func (s *adapters) keep(all []Adapter) error {
	if len(all) >= ir.MostApplied {
		return fmt.Errorf("the model has %d adapters of its own, want less than %d", len(all), ir.MostApplied)
	}
	for _, a := range all {
		loaded, err := a.Open(s.program)
		if err != nil {
			return err
		}
		loaded.Collect()
		if s.bytes += loaded.Bytes; s.bytes > s.most {
			return fmt.Errorf("the model's own adapters take more than %d MiB", s.most>>20)
		}
		s.own = append(s.own, taken{&adapter{Adapter: a}, loaded, 1})
	}
	return checkRanks(s.own)
}

// checkRanks refuses adapters for which devices have no room between two factors.
func checkRanks(all []taken) error {
	ranks := 0
	for _, t := range all {
		ranks += t.loaded.Ranks()
	}
	if ranks > ir.MostRank {
		return refusal.Of("the adapters have ranks of %d in all, want at most %d: ask for fewer", ranks, ir.MostRank)
	}
	return nil
}

// drop forgets an adapter. Requests that use it go on.
func (s *adapters) drop(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, a := range s.known {
		if a != nil && a.Name == name {
			s.leave(a)
			s.known[id] = nil
			return true
		}
	}
	return false
}

// leave takes an adapter out of memory.
func (s *adapters) leave(a *adapter) {
	if a.loaded != nil {
		s.bytes -= a.loaded.Bytes
		a.loaded = nil
	}
}

// taken is an adapter that a request uses, and how.
type taken struct {
	*adapter
	loaded *lora.Loaded
	scale  float32
}

// take loads what a request asks for. The order of the adapters does not depend on that in which they are named, so
// that neither do the bits of the answer.
func (s *adapters) take(asked []Adapting) (all []taken, err error) {
	defer func() {
		if err != nil {
			s.release(all)
		}
	}()
	if most := ir.MostApplied - len(s.own); len(asked) > most {
		return nil, refusal.Of("%d adapters are asked for, want at most %d", len(asked), most)
	}
	for _, one := range asked {
		if x := float64(one.Scale); math.IsNaN(x) || math.Abs(x) > 1e6 {
			return all, refusal.Of("the scale of adapter %q is %v, want a number up to 1e6", one.Name, one.Scale)
		}
		s.mu.Lock()
		a := s.find(one.Name)
		if a != nil {
			a.open++
		}
		s.mu.Unlock()
		if a == nil {
			return all, refusal.Of("there is no adapter called %.80q", one.Name)
		}
		all = append(all, taken{adapter: a, scale: one.Scale})
		if slices.ContainsFunc(all[:len(all)-1], func(t taken) bool { return t.adapter == a }) {
			return all, refusal.Of("the adapter %.80q is named twice", one.Name)
		}
		if all[len(all)-1].loaded, err = s.load(a); err != nil {
			return all, err
		}
	}
	all = slices.DeleteFunc(all, func(t taken) bool {
		if t.scale == 0 {
			s.release([]taken{t})
		}
		return t.scale == 0
	})
	if err := checkRanks(slices.Concat(s.own, all)); err != nil {
		return all, err
	}
	slices.SortFunc(all, func(x, y taken) int { return slices.Compare(x.loaded.Digest[:], y.loaded.Digest[:]) })
	return all, nil
}

// release says that a request uses them no more.
func (s *adapters) release(all []taken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range all {
		t.open--
	}
}

// load brings an adapter, which a request uses, into memory, unless it is there.
func (s *adapters) load(a *adapter) (*lora.Loaded, error) {
	a.loading.Lock()
	defer a.loading.Unlock()
	s.mu.Lock()
	s.uses++
	a.used = s.uses
	there := a.loaded
	s.mu.Unlock()
	if there != nil {
		return there, nil
	}
	loaded, err := a.Open(s.program)
	if err != nil {
		return nil, refusal.Of("%v", err)
	}
	loaded.Collect() // when nobody refers to it
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.room(loaded.Bytes); err != nil {
		return nil, err
	}
	s.bytes += loaded.Bytes
	a.loaded = loaded
	return loaded, nil
}

// room has adapters leave until so many bytes are free.
func (s *adapters) room(bytes int64) error {
	left := false
	for s.bytes+bytes > s.most {
		var oldest *adapter
		for _, a := range s.known {
			if a != nil && a.loaded != nil && a.open == 0 && (oldest == nil || a.used < oldest.used) {
				oldest = a
			}
		}
		if oldest == nil {
			return fmt.Errorf("%w, %d MiB", ErrAdapters, s.most>>20)
		}
		s.leave(oldest)
		left = true
	}
	if left {
		runtime.GC() // which frees what left
	}
	return nil
}

// applied is the adapters as steps have them, and a salt that tells prefixes with them apart from others.
func applied(all []taken, salt uint64) ([]ir.Applied, uint64) {
	if len(all) == 0 {
		return nil, salt
	}
	steps, sum := make([]ir.Applied, len(all)), binary.LittleEndian.AppendUint64([]byte("sluice adapters"), salt)
	for i, t := range all {
		steps[i] = ir.Applied{Adapter: &t.loaded.Adapter, Scale: t.scale}
		sum = binary.LittleEndian.AppendUint32(append(sum, t.loaded.Digest[:]...), math.Float32bits(t.scale))
	}
	digest := sha256.Sum256(sum)
	return steps, binary.LittleEndian.Uint64(digest[:])
}

// adapt loads what a request asks for: nil is what requests have that name none. A salt comes back that tells prefixes
// apart. done is called when the request has ended.
func (s *adapters) adapt(asked []Adapting, salt uint64) (steps []ir.Applied, salted uint64, done func(), err error) {
	if s == nil {
		if len(asked) > 0 {
			err = errNoAdapters
		}
		return nil, salt, func() {}, err
	}
	if asked == nil {
		asked = s.usual()
	}
	all, err := s.take(asked)
	if err != nil {
		return nil, salt, nil, err
	}
	steps, salted = applied(slices.Concat(s.own, all), salt)
	return steps, salted, func() { s.release(all) }, nil
}

// usual are the adapters of requests that name none.
func (s *adapters) usual() (all []Adapting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.known {
		if a != nil && a.scale != 0 {
			all = append(all, Adapting{a.Name, a.scale})
		}
	}
	return all
}
