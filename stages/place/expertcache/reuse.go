package expertcache

// reuse measures how much an expert's past says of its future. Of each expert it keeps how often it was used, in
// several averages that forget at different speeds, and how often it followed upon each of the others. Which of these
// tell most depends on the text and the model: now and then it writes down what it has of a layer, waits for the first
// use of each expert, and fits by least squares how soon that came to what it had written down. What is worth keeping
// is what the fit expects soonest.
//
// So experts of lasting popularity are told from those in fashion, and from those of a cycle that just were used and
// will not be soon.
type reuse struct {
	layers []measures
	turn   int // of the layer that is written down next
	fit    fit
}

// memories is how many averages there are, memory by how much of each is left after a time.
const memories = 4

var memory = [memories]float64{0.9, 0.97, 0.99, 0.998}

// usual is how much each term tells, as long as little was observed.
var usual = [terms]float64{0.1, 0.2, 0.3, 0.4, follows: 0.7, constant: 0}

const (
	follows  = memories // how likely it is after what was used last
	constant = memories + 1
	terms    = memories + 2

	horizon = 12  // times that the first use is waited for
	sooner  = 0.8 // what a use is worth, of one that comes a time sooner
	most    = 1e100
)

// measures are those of a layer's experts, and what is waited for.
type measures struct {
	of     [][memories]float64 // averages, but for full: uses do not fade, each one counts more than those before
	use    [memories]float64   // what one counts now; below most
	full   [memories]float64   // what an expert would have that was always used
	weight [memories]float64   // of averages, in what is expected
	follow float64             // of what follows
	after  succession
	past   [][terms]float64 // as they were written down
	worth  []float64        // of the first use since, by expert; 0: there was none
	left   int              // times to wait; 0: nothing is written down
	first  float64          // what a first use is worth now
}

func newReuse(experts []int) *reuse {
	r := &reuse{layers: make([]measures, len(experts))}
	for i, n := range experts {
		r.layers[i] = measures{of: make([][memories]float64, n), past: make([][terms]float64, n),
			worth: make([]float64, n), after: newSuccession(n)}
		for j := range memories {
			r.layers[i].use[j] = 1
		}
	}
	r.fit.begin()
	return r
}

func (r *reuse) touch(l int, experts []int32) {
	m := &r.layers[l]
	m.wait(&r.fit, experts)
	m.count(experts)
	m.after.touch(experts)
	m.follow = r.fit.weights[follows]
	for i := range memories {
		m.weight[i] = r.fit.weights[i] / m.full[i]
	}
	if l == r.turn && m.left == 0 {
		for e := range m.past {
			m.terms(e, &m.past[e])
		}
		clear(m.worth)
		m.left, m.first = horizon, 1
		r.turn = (r.turn + 1) % len(r.layers)
	}
}

// count adds uses to the averages.
func (m *measures) count(experts []int32) {
	for i := range memories {
		m.use[i] /= memory[i]
		m.full[i] += m.use[i]
		if m.use[i] < most {
			continue
		}
		m.full[i], m.use[i] = m.full[i]/most, m.use[i]/most
		for e := range m.of {
			m.of[e][i] /= most
		}
	}
	for _, e := range experts {
		of := &m.of[e]
		for i := range memories {
			of[i] += m.use[i]
		}
	}
}

// terms sets x to what an expert's past is now.
func (m *measures) terms(e int, x *[terms]float64) {
	for i := range memories {
		x[i] = m.of[e][i] / m.full[i]
	}
	x[follows], x[constant] = m.after.likely(e), 1
}

// wait goes on with what was written down, and gives it to the fit when the horizon is reached.
func (m *measures) wait(f *fit, experts []int32) {
	if m.left == 0 {
		return
	}
	for _, e := range experts {
		m.worth[e] = max(m.worth[e], m.first)
	}
	m.first *= sooner
	if m.left--; m.left > 0 {
		return
	}
	for e := range m.past {
		f.add(&m.past[e], m.worth[e])
	}
	f.solve()
}

// expect sets worth to an order of some experts by how soon they will be used.
func (r *reuse) expect(l int, among []int32, worth []float64) {
	m := &r.layers[l]
	w := m.weight
	for i, e := range among {
		of := &m.of[e]
		worth[i] = float64(w[0]*of[0]) + float64(w[1]*of[1]) + float64(w[2]*of[2]) + float64(w[3]*of[3])
	}
	m.after.add(worth, among, m.follow)
}

// rare is what is expected of an expert that is hardly ever used: it may be.
const rare = 0.01

// certain makes of an order how soon each use is expected, at a time: where prices differ, it counts by how much one is
// sooner than another. As long as little was observed of a layer, all are expected about alike.
func (r *reuse) certain(time, experts int, worth []float64) {
	sum := 0.0
	for i := range worth {
		worth[i] = max(worth[i]+r.fit.weights[constant], rare)
		sum += worth[i]
	}
	mean, unsure := sum/float64(len(worth)), float64(experts)/float64(experts+time)
	for i := range worth {
		worth[i] += unsure * (mean - worth[i])
	}
}
