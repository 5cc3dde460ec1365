package ir

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// AttendArgs configures Attend: q [rows][Heads·KDim], k [rows][KVHeads·KDim], v [rows][KVHeads·VDim] →
// [rows][Heads·VDim]. Query head h reads KV head h/(Heads/KVHeads). A row at position p sees positions
// max(0, p−Window+1)…p, or 0…p when Window is 0, or, Chunked, those of its own chunk of Window positions up to p. If
// Both, a row sees all positions of its text, which is one span from position 0 on, or, with a Reach, p−Reach…p+Reach;
// there is no window. With an Alibi, a score falls with the distance of its two positions: see Slope. With Buckets,
// B[bucket, h] is added to head h's scores: see Bucket. A Side sees a part of what rows would see otherwise. A row that
// sees no position has zeros. A sink adds e^(W[h]) to the sum that head h's softmax divides by, as a position whose
// value is 0 would.
// Wide: what a row sees, and how it weighs that, are told apart by no other words.
type AttendArgs struct {
	KV                         int // index into Program.KV
	Heads, KVHeads, KDim, VDim int
	Scale                      float32 // multiplies q·k
	SoftCap                    float32 // s = SoftCap·tanh(s/SoftCap) before the mask; 0 = none
	Window                     int
	Chunked                    bool
	Both                       bool    // ways: an encoder
	Reach                      int     // positions on each side that a row of an encoder sees; 0: all
	Alibi                      float32 // the slope of the last head is 2^−Alibi; 0: scores do not fall
	Buckets                    int     // of distances, whose scores have biases of their own; 0: none
	Farthest                   int     // the distance from which on all are in the last bucket
	Every                      int     // a row sees the last one of every so many positions alone; 0: each
	Sums                       bool    // the result has the logarithm of each head's sum behind the heads: see NoSum
	Side                       Side    // of what an encoder read, and what is said to it
}

// Slope is by how much a score of a query head falls for each position between the two that it compares (ALiBi,
// arXiv:2108.12409): with n heads, of which there is a power of two, 2^(−Alibi·(head+1)/n). Of other numbers the heads
// beyond the power of two below have every second slope of twice as many heads. Without an Alibi it is 0.
func (a *AttendArgs) Slope(head int) float64 {
	if a.Alibi == 0 {
		return 0
	}
	n := 1 << (bits.Len(uint(a.Heads)) - 1)
	exponent := float64(head+1) / float64(n)
	if head >= n {
		exponent = float64(2*(head-n)+1) / float64(2*n)
	}
	return math.Exp2(-float64(a.Alibi) * exponent)
}

// Bucket is the bucket of positions that lie so far after the row that sees them, less than 0 if before it (T5,
// arXiv:1910.10683). Both ways, the second half of buckets is that of later positions. Of one way's buckets the first
// half has a distance each; those of the others grow as powers do, until Farthest.
func (a *AttendArgs) Bucket(after int) int {
	n, from, far := a.Buckets, 0, max(-after, 0)
	if a.Both {
		n /= 2
		if far = max(after, -after); after > 0 {
			from = n
		}
	}
	exact := n / 2
	if far < exact {
		return from + far
	}
	grown := math.Log(float64(far)/float64(exact)) / math.Log(float64(a.Farthest)/float64(exact)) * float64(n-exact)
	return from + min(n-1, exact+int(grown+1e-9)) // a power that is whole is in the bucket that begins there
}

// NoSum stands for the logarithm of the sum of a row that sees no position.
const NoSum = -1e30

// Width is the features of the result.
func (a *AttendArgs) Width() int {
	if a.Sums {
		return a.Heads * (a.VDim + 1)
	}
	return a.Heads * a.VDim
}

// Hides says whether no row sees a position, of those that it could see.
func (a *AttendArgs) Hides(position int) bool { return a.Every > 0 && (position+1)%a.Every != 0 }

// First is the first position that the row at a position sees.
func (a *AttendArgs) First(position int) int {
	if a.Reach > 0 {
		return max(position-a.Reach, 0)
	}
	return a.Class().First(position)
}

// LastRow is the last position whose row may see a position.
func (a *AttendArgs) LastRow(position int) int {
	if a.Reach > 0 {
		return position + a.Reach
	}
	return a.Class().Last(position)
}

// Last is the last position that a row of an encoder sees, of a text that ends with the position end.
func (a *AttendArgs) Last(position, end int) int {
	if a.Reach > 0 {
		return min(position+a.Reach, end)
	}
	return end
}

// Class is the cache class of what a row sees.
func (a *AttendArgs) Class() Class { return Class{Window: a.Window, Chunked: a.Chunked} }

// costOfAttend: each position that a head sees has a weight.
func costOfAttend(_ *Program, n *Node) Cost {
	a := n.Attend
	return Cost{Seen: float64(a.Heads * (a.KDim + a.VDim)), Looks: float64(a.Heads)}
}

// attendOp describes Attend.
var attendOp = operation{
	name: "attend", inputs: [2]int{1, 3}, w: optional, b: optional, use: Vector, fits: fitsAttend,
	loop: (*Frame).attend, cost: costOfAttend,
	args: func(n *Node) string {
		a := n.Attend
		s := fmt.Sprintf("kv=%d heads=%d/%d dims=%d/%d scale=%g cap=%g window=%d",
			a.KV, a.Heads, a.KVHeads, a.KDim, a.VDim, a.Scale, a.SoftCap, a.Window)
		if a.Chunked {
			s += " chunked"
		}
		if a.Both {
			s += " both"
		}
		if a.Alibi > 0 {
			s += fmt.Sprintf(" alibi=%g", a.Alibi)
		}
		if a.Reach > 0 {
			s += fmt.Sprintf(" reach=%d", a.Reach)
		}
		if a.Every > 0 {
			s += fmt.Sprintf(" every=%d", a.Every)
		}
		if a.Sums {
			s += " sums"
		}
		if a.Side > 0 {
			s += fmt.Sprintf(" %s", a.Side)
		}
		if a.Buckets > 0 {
			s += fmt.Sprintf(" buckets=%d to %d", a.Buckets, a.Farthest)
		}
		return s
	},
	cases: []Case{
		{"attend", func(b *Builder, x Value, n int) Value {
			return CaseAttend(b, x, AttendArgs{Heads: n / 16, KVHeads: n / 16, KDim: 16, VDim: 16, Scale: 0.25})
		}},
		{"attend grouped", func(b *Builder, x Value, n int) Value {
			return CaseAttend(b, x, AttendArgs{Heads: n / 32, KVHeads: 1, KDim: 32, VDim: 32, Scale: 0.2})
		}},
		{"attend window", func(b *Builder, x Value, n int) Value {
			return CaseAttend(b, x, AttendArgs{Heads: n / 32, KVHeads: 2, KDim: 32, VDim: 32, Scale: 0.2, Window: 70})
		}},
		{"attend narrow", func(b *Builder, x Value, n int) Value {
			return CaseAttend(b, x, AttendArgs{Heads: n / 16, KVHeads: 2, KDim: 16, VDim: 16, Scale: 0.2, Window: 1})
		}},
		{"attend cap", func(b *Builder, x Value, n int) Value {
			return CaseAttend(b, x, AttendArgs{Heads: n / 16, KVHeads: 2, KDim: 16, VDim: 16, Scale: 1, SoftCap: 3})
		}},
		{"attend sinks", func(b *Builder, x Value, n int) Value {
			a := AttendArgs{Heads: n / 16, KVHeads: 2, KDim: 16, VDim: 16, Scale: 0.2, Window: 70}
			return b.AttendSinks(x, b.Slice(x, 0, 32), b.Slice(x, 32, 32), "sinks", a)
		}},
		{"attend chunked", func(b *Builder, x Value, n int) Value {
			return CaseAttend(b, x, AttendArgs{Heads: n / 32, KVHeads: 2, KDim: 32, VDim: 32, Scale: 0.2, Window: 70, Chunked: true})
		}},
		{"attend chunks", func(b *Builder, x Value, n int) Value {
			return CaseAttend(b, x, AttendArgs{Heads: n / 16, KVHeads: 1, KDim: 16, VDim: 16, Scale: 0.2, Window: 24, Chunked: true})
		}},
		{"attend alibi", func(b *Builder, x Value, n int) Value {
			a := AttendArgs{Heads: n / 16, KVHeads: n / 32, KDim: 16, VDim: 16, Scale: 0.2, Alibi: 8}
			return CaseAttend(b, x, a)
		}},
		{"attend buckets", func(b *Builder, x Value, n int) Value {
			a := AttendArgs{Heads: n / 16, KVHeads: n / 32, KDim: 16, VDim: 16, Scale: 0.2, Buckets: 12, Farthest: 80}
			return b.AttendBiased(x, b.Slice(x, 0, n/2), b.Slice(x, n/2, n/2), "buckets", a)
		}},
		{"attend every", func(b *Builder, x Value, n int) Value {
			return CaseAttend(b, x, AttendArgs{Heads: n / 32, KVHeads: 2, KDim: 32, VDim: 32, Scale: 0.2, Every: 7})
		}},
		{"attend far apart", func(b *Builder, x Value, n int) Value {
			return CaseAttend(b, x, AttendArgs{Heads: n / 32, KVHeads: 2, KDim: 32, VDim: 32, Scale: 0.2, Every: 100})
		}},
		{"attend sums", func(b *Builder, x Value, n int) Value {
			a := AttendArgs{Heads: n / 32, KVHeads: 1, KDim: 32, VDim: 32, Scale: 0.2, Every: 3, Sums: true}
			y := CaseAttend(b, x, a)
			sums := b.Act(Sigmoid, b.Slice(y, n, n/32))
			return b.Mul(b.Slice(y, 0, n), sums)
		}},
		{"attend sums with sinks", func(b *Builder, x Value, n int) Value {
			a := AttendArgs{Heads: n / 16, KVHeads: 2, KDim: 16, VDim: 16, Scale: 0.2, Window: 70, Sums: true}
			y := b.AttendSinks(x, b.Slice(x, 0, 32), b.Slice(x, 32, 32), "sinks", a)
			return b.Mul(b.Slice(y, 0, n), b.Slice(y, n, n/16))
		}},
		{"attend what was heard", func(b *Builder, x Value, n int) Value {
			return CaseAttend(b, x, AttendArgs{Heads: n / 16, KVHeads: 2, KDim: 16, VDim: 16, Scale: 0.2, Side: HeardSide})
		}},
		{"attend what was said", func(b *Builder, x Value, n int) Value {
			a := AttendArgs{Heads: n / 16, KVHeads: n / 32, KDim: 16, VDim: 16, Scale: 0.2, Buckets: 12, Farthest: 80,
				Side: SaidSide}
			return b.AttendBiased(x, b.Slice(x, 0, n/2), b.Slice(x, n/2, n/2), "buckets", a)
		}},
		{"attend shared", func(b *Builder, x Value, n int) Value {
			a := AttendArgs{Heads: n / 16, KVHeads: 2, KDim: 16, VDim: 16, Scale: 0.2, Window: 70}
			first := CaseAttend(b, x, a)
			return b.AttendShared(b.Add(x, first), first, a)
		}},
	},
}

// Attend gives the layer its KV cache and attends to it. a.KV is set here.
func (b *Builder) Attend(q, k, v Value, a AttendArgs) Value {
	a.KV = len(b.p.KV)
	b.p.Whole, b.p.Hears = b.p.Whole || a.Both, b.p.Hears || a.Side > 0
	b.p.KV = append(b.p.KV, KVLayer{KVHeads: a.KVHeads, KDim: a.KDim, VDim: a.VDim, Class: b.class(a.Class())})
	return b.add(Node{Op: Attend, In: []Value{q, k, v}, W: NoRef, B: NoRef, Attend: &a}, a.Width())
}

// AttendSinks is Attend with a sink for each head, the vector name.
func (b *Builder) AttendSinks(q, k, v Value, name string, a AttendArgs) Value {
	out := b.Attend(q, k, v, a)
	nodes := b.segment().Nodes
	nodes[len(nodes)-1].W = b.vector(name+".weight", a.Heads)
	return out
}

// AttendBiased is Attend with a.Buckets: the tensor of the complete name has a row for each, of a bias for each head.
// Layers may share it.
func (b *Builder) AttendBiased(q, k, v Value, name string, a AttendArgs) Value {
	out := b.Attend(q, k, v, a)
	nodes := b.segment().Nodes
	nodes[len(nodes)-1].B = b.intern(name+".weight", a.Buckets, a.Heads, Vector)
	return out
}

// AttendShared attends to the cache that an earlier Attend filled, whose output is filled. a.KV is set here.
func (b *Builder) AttendShared(q, filled Value, a AttendArgs) Value {
	for i := range b.p.Segments {
		for _, n := range b.p.Segments[i].Nodes {
			if n.Op == Attend && n.Out == filled {
				a.KV = n.Attend.KV
			}
		}
	}
	return b.add(Node{Op: Attend, In: []Value{q}, W: NoRef, B: NoRef, Attend: &a}, a.Width())
}

func fitsAttend(p *Program, n *Node) error {
	a := n.Attend
	if a.KVHeads <= 0 || a.Heads <= 0 || a.Heads%a.KVHeads != 0 || a.KDim <= 0 || a.VDim <= 0 {
		return fmt.Errorf("%d heads of %d cannot share %d KV heads of %d", a.Heads, a.KDim, a.KVHeads, a.VDim)
	}
	want := []int{a.Width(), a.Heads * a.KDim, a.KVHeads * a.KDim, a.KVHeads * a.VDim}
	got := []int{p.Widths[n.Out]}
	for _, v := range n.In {
		got = append(got, p.Widths[v])
	}
	if len(n.In) == 2 || !slices.Equal(got, want[:len(got)]) {
		return fmt.Errorf("the output, q, k and v have %d features, want %d, or the first two", got, want)
	}
	if a.KV < 0 || a.KV >= len(p.KV) {
		return fmt.Errorf("cache %d of %d", a.KV, len(p.KV))
	}
	kv := p.KV[a.KV]
	if want := (KVLayer{a.KVHeads, a.KDim, a.VDim, kv.Class, kv.Recent}); kv != want {
		return fmt.Errorf("cache %d is %+v, want %+v", a.KV, kv, want)
	}
	if kv.Class < 0 || kv.Class >= len(p.Classes) || p.Classes[kv.Class] != a.Class() {
		return fmt.Errorf("cache %d is of class %d of %+v, want %+v", a.KV, kv.Class, p.Classes, a.Class())
	}
	if a.Window < 0 || a.Chunked && a.Window == 0 {
		return fmt.Errorf("window %d", a.Window)
	}
	if a.Both && (a.Window != 0 || !p.Whole) {
		return fmt.Errorf("both ways: window %d, whole texts %t, want none, and whole ones", a.Window, p.Whole)
	}
	if a.Reach < 0 || a.Reach > 0 && !a.Both {
		return fmt.Errorf("reach %d, both ways %t", a.Reach, a.Both)
	}
	if a.Every < 0 || a.Every > 0 && (a.Both || a.Window > 0) {
		return fmt.Errorf("every %d positions, both ways %t, window %d", a.Every, a.Both, a.Window)
	}
	if a.Side > SaidSide || a.Side > 0 && (a.Both || a.Window > 0 || a.Every > 0 || !p.Hears) {
		return fmt.Errorf("side %d, both ways %t, window %d, every %d positions, of a program that hears: %t", a.Side, a.Both,
			a.Window, a.Every, p.Hears)
	}
	if a.Alibi < 0 || !finite(float64(a.Alibi)) {
		return fmt.Errorf("alibi %v", a.Alibi)
	}
	if err := a.fitsBuckets(p, n.B); err != nil {
		return err
	}
	if a.SoftCap < 0 || !finite(float64(a.SoftCap)) || !finite(float64(a.Scale)) {
		return fmt.Errorf("soft cap %v, scale %v", a.SoftCap, a.Scale)
	}
	return vector(p, n.W, a.Heads)
}

// fitsBuckets checks the biases of distances.
func (a *AttendArgs) fitsBuckets(p *Program, bias Ref) error {
	const least = 4
	if a.Buckets == 0 && a.Farthest == 0 && bias == NoRef {
		return nil
	}
	if a.Buckets < least || a.Buckets%least != 0 || a.Farthest <= a.Buckets || a.Farthest > mostFarthest || bias == NoRef {
		return fmt.Errorf("%d buckets of distances up to %d, with biases: %t, want 4 or a multiple of it, more distances, "+
			"at most %d, and biases", a.Buckets, a.Farthest, bias != NoRef, mostFarthest)
	}
	if w := &p.Weights[bias]; w.Rows != a.Buckets || w.Cols != a.Heads {
		return fmt.Errorf("%s is %d×%d, want %d×%d", w.Name, w.Rows, w.Cols, a.Buckets, a.Heads)
	}
	return nil
}

// mostFarthest bounds what devices keep of a head's biases.
const mostFarthest = 1 << 12

// attend first stores the keys and values of all rows, so that a row sees those before it in its own step.
func (f *Frame) attend(n *Node) {
	c := f.Caches[n.Attend.KV]
	for s, span := range f.Spans {
		for i := range span.Rows {
			if len(n.In) == 1 {
				break // another layer stored them
			}
			k, v := f.row(n.In[1], span.Row+i), f.row(n.In[2], span.Row+i)
			if !n.Attend.Side.Keeps(span.Heard, span.Pos+i) { // nothing depends on them then
				k, v = make([]float32, len(k)), make([]float32, len(v))
			}
			c.Put(s, span.Pos+i, k, v)
		}
	}
	sinks := f.vector(n.W, n.Attend.Heads, float32(math.Inf(-1)))
	var biases []float32
	if n.B != NoRef {
		biases = f.table(n.B)
	}
	for s, span := range f.Spans {
		for i := range span.Rows {
			q, y := f.row(n.In[0], span.Row+i), f.row(n.Out, span.Row+i)
			from, to := n.Attend.First(span.Pos+i), LastOf(span.Sees, span.Pos, i)
			if n.Attend.Both {
				to = n.Attend.Last(span.Pos+i, span.Pos+span.Rows-1)
			}
			from, end := n.Attend.Side.Within(span.Heard, span.Pos+i, from, to+1)
			for h, sink := range sinks {
				n.Attend.head(c, h, float64(sink), biases, q, y, s, span.Pos+i, from, end-1)
			}
		}
	}
}

// head computes head h of the row at position row: a softmax over the sink and the positions it sees, from … to.
func (a *AttendArgs) head(c Cache, h int, sink float64, biases, q, all []float32, span, row, from, to int) {
	head, y := h/(a.Heads/a.KVHeads), all
	q, y = q[h*a.KDim:(h+1)*a.KDim], y[h*a.VDim:(h+1)*a.VDim]
	scores := make([]float64, 0, max(to-from+1, 0))
	highest, slope := sink, a.Slope(h)
	for p := from; p <= to; p++ {
		if a.Hides(p) {
			scores = append(scores, math.Inf(-1))
			continue
		}
		dot := 0.0
		for i, k := range c.Key(span, row, p, head) {
			dot += float64(q[i]) * float64(k)
		}
		score := dot * float64(a.Scale)
		if limit := float64(a.SoftCap); limit > 0 {
			score = Cap(score, limit)
		}
		score -= slope * math.Abs(float64(row-p))
		if biases != nil {
			score += float64(biases[a.Bucket(p-row)*a.Heads+h])
		}
		scores = append(scores, score)
		highest = math.Max(highest, score)
	}
	if math.IsInf(highest, -1) { // it sees nothing
		clear(y)
		if a.Sums {
			all[a.Heads*a.VDim+h] = NoSum
		}
		return
	}
	total, sums := math.Exp(sink-highest), make([]float64, a.VDim)
	for j, score := range scores {
		if a.Hides(from + j) {
			continue
		}
		weight := math.Exp(score - highest)
		total += weight
		for i, v := range c.Value(span, row, from+j, head) {
			sums[i] += weight * float64(v)
		}
	}
	for i, sum := range sums {
		y[i] = float32(sum / total)
	}
	if a.Sums {
		all[a.Heads*a.VDim+h] = float32(highest + math.Log(total))
	}
}

// CaseAttend takes q, k and v from x itself, so that nothing but attention is computed.
func CaseAttend(b *Builder, x Value, a AttendArgs) Value {
	k, v := a.KVHeads*a.KDim, a.KVHeads*a.VDim
	return b.Attend(x, b.Slice(x, b.Width(x)-k, k), b.Slice(x, 0, v), a)
}
