package measure

import (
	"math"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/kvmix"
)

// tap is a form that keeps what another one would give back, in float32. Which one that is may change between
// requests, so that one loaded model shows what every type loses.
type tap struct{ as atomic.Pointer[backend.Form] }

// Bytes implements backend.Form.
func (*tap) Bytes(features int) int { return backend.Float32{}.Bytes(features) }

// Put implements backend.Form.
func (t *tap) Put(block []byte, features, at int, rows []float32) {
	if as := t.as.Load(); as != nil && *as != nil {
		form := *as
		scratch := make([]byte, form.Bytes(features))
		form.Put(scratch, features, at, rows)
		rows = make([]float32, len(rows))
		form.Get(rows, scratch, features, at)
	}
	backend.Float32{}.Put(block, features, at, rows)
}

// Get implements backend.Form.
func (*tap) Get(rows []float32, block []byte, features, at int) {
	backend.Float32{}.Get(rows, block, features, at)
}

// errorTypes are the types whose errors are measured. The last is for V alone, but measured for both.
var errorTypes = []string{"f16", "q8", "q5", "q4", "tq4", "tq3", "tq2"}

// kvErrors sums what each type loses of rows as they are stored, by cache and head.
type kvErrors struct {
	forms  [2][]backend.Form // of K and V, by type
	heads  [][2][]headErrors // by cache; of K and V, by head
	paused atomic.Bool       // the same rows come again
	done   atomic.Bool
}

// headErrors are sums over the rows of a head.
type headErrors struct {
	mu      sync.Mutex
	rows    int
	squares float64
	sum     []float64 // of the rows
	lost    []float64 // squares of what is lost, by type
}

func newKVErrors(caches []ir.KVLayer) *kvErrors {
	e := new(kvErrors)
	for _, name := range errorTypes {
		kv, err := backend.MixKV("f16", name)
		if err != nil {
			panic(err) // a name of the list above
		}
		e.forms[1] = append(e.forms[1], kv.V.Kept())
		if same, err := backend.ParseKV(name); err == nil {
			kv = same
		} else {
			kv.K = kv.V
		}
		e.forms[0] = append(e.forms[0], kv.K.Kept())
	}
	e.heads = make([][2][]headErrors, len(caches))
	for i, l := range caches {
		for side, features := range []int{l.KDim, l.VDim} {
			e.heads[i][side] = make([]headErrors, l.KVHeads)
			for h := range e.heads[i][side] {
				e.heads[i][side][h] = headErrors{sum: make([]float64, features), lost: make([]float64, len(errorTypes))}
			}
		}
	}
	return e
}

// coarse are the codes by which is found how much a model minds errors: what they add is well above what rounding does.
func (e *kvErrors) coarse() backend.Form { return e.forms[1][len(errorTypes)-1] }

// add adds the rows of a position, or leaves them out: one of four is enough. Which ones depends on the rows alone, so
// that a profile does not depend on the order in which threads come.
func (e *kvErrors) add(cache, head int, key, value []float32) {
	if e.paused.Load() || e.done.Load() || math.Float32bits(key[0])>>4&3 != 0 {
		return
	}
	for side, row := range [][]float32{key, value} {
		e.heads[cache][side][head].add(e.forms[side], row)
	}
}

func (h *headErrors) add(forms []backend.Form, row []float32) {
	lost, got := make([]float64, len(forms)), make([]float32, len(row))
	for i, form := range forms {
		block := make([]byte, form.Bytes(len(row)))
		form.Put(block, len(row), 0, row)
		form.Get(got, block, len(row), 0)
		for j, x := range row {
			lost[i] += float64(x-got[j]) * float64(x-got[j])
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rows++
	for j, x := range row {
		h.sum[j] += float64(x)
		h.squares += float64(x) * float64(x)
	}
	for i, x := range lost {
		h.lost[i] += x
	}
}

// weight is what losses are a share of: the squares of V, or of K without its mean over positions.
func (h *headErrors) weight(side int) float64 {
	all := h.squares
	if side == 0 && h.rows > 0 {
		for _, x := range h.sum {
			all -= x * x / float64(h.rows)
		}
	}
	return max(all, math.SmallestNonzeroFloat32)
}

// side is what was found of K or V of a cache.
func (e *kvErrors) side(cache, side int) (s kvmix.Side) {
	lost, weight := make([]float64, len(errorTypes)), 0.0
	for h := range e.heads[cache][side] {
		head := &e.heads[cache][side][h]
		own := head.weight(side)
		weight += own
		var shares []float64
		for i, x := range head.lost {
			lost[i] += x
			shares = append(shares, rounded(x/own))
		}
		s.Heads = append(s.Heads, shares)
	}
	for _, x := range lost {
		s.Errors = append(s.Errors, rounded(x/weight))
	}
	s.Coarse = s.Errors[len(s.Errors)-1]
	return s
}

// rounded leaves four digits: the order in which threads add changes later ones.
func rounded(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	return y
}
