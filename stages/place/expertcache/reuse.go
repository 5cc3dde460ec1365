package expertcache

// reuse predicts an expert's next use from its past. Of each expert it keeps how often it was used, in several
// averages that forget at different speeds, and how often it followed each of the others. Which of these terms tell
// most depends on the text and the model. So now and then it samples the terms of a layer's experts, waits for the
// first use of each expert, and fits by least squares how soon that came to the terms. Those experts are worth
// keeping whose use the fit expects soonest.
//
// So experts of lasting popularity are told from those that are popular for a while, and from those that come round
// in a cycle: these were just used, and will not be soon.
type reuse struct {
	layers []measures
	turn   int // the layer that is sampled next
	fit    fit
}

// memories is the number of averages; memory is, for each, how much of it is left after one time.
const memories = 4

var memory = [memories]float64{0.9, 0.97, 0.99, 0.998}

// usual is the weight of each term as long as little was observed.
var usual = [terms]float64{0.1, 0.2, 0.3, 0.4, follows: 0.7, constant: 0}

const (
	follows  = memories     // term: succession.likely
	constant = memories + 1 // term: 1
	terms    = memories + 2

	horizon = 12  // times that a first use is waited for
	sooner  = 0.8 // what a first use is worth, as a share of one that comes a time sooner
	most    = 1e100
)

// measures are what is known of one layer's experts, and the sample whose first uses are waited for.
type measures struct {
	of     [][memories]float64 // by expert: averages times full. Uses do not fade: each one counts more than those before
	use    [memories]float64   // what a use counts now; below most
	full   [memories]float64   // what of would be for an expert that is always used
	weight [memories]float64   // weights of the averages in the fit, over full
	follow float64             // weight of what follows
	after  succession
	past   [][terms]float64 // by expert: terms, as they were sampled
	worth  []float64        // by expert: worth of the first use since; 0: there was none
	left   int              // times to wait; 0: there is no sample
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

// terms sets x to the present terms of an expert.
func (m *measures) terms(e int, x *[terms]float64) {
	for i := range memories {
		x[i] = m.of[e][i] / m.full[i]
	}
	x[follows], x[constant] = m.after.likely(e), 1
}

// wait records first uses since the sample was taken, and gives the sample to the fit when the horizon is reached.
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

// expect sets worth to numbers that order some experts by how soon they will be used: more is sooner.
func (r *reuse) expect(l int, among []int32, worth []float64) {
	m := &r.layers[l]
	w := m.weight
	for i, e := range among {
		of := &m.of[e]
		worth[i] = float64(w[0]*of[0]) + float64(w[1]*of[1]) + float64(w[2]*of[2]) + float64(w[3]*of[3])
	}
	m.after.add(worth, among, m.follow)
}

// rare is the least worth of an expert: one that was hardly ever used may still be.
const rare = 0.01

// certain turns the order of expect into estimates of how soon each use comes: where prices differ, the size of a
// difference counts as well. As long as little was observed of a layer, all are nearly equal.
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
