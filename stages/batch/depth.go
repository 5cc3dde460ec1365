package batch

// weigh is the cost of a row of a sequence's answer, as the number of rows behind no text that would take as long.
// fixed is Budget.Fixed: so many rows take as long as reading the weights, as which Limits.Pass positions do.
func (s *State) weigh(q *Seq, fixed int) int {
	if s.limits.Pass == 0 {
		return 1
	}
	return 1 + (q.planned*max(fixed, 1)+s.limits.Pass/2)/s.limits.Pass
}

// turns bounds the weight of a step's answers. A row behind a long text may weigh more than its share of a step lets
// in. Then it comes in turns, one in a step: its client's next turn is when steps have taken the others' share of the
// time besides, for which the client pays by the row's weight. So of k clients each has a k-th of the time, and who
// asks behind a short text is not held up by who asks behind a long one.
type turns struct {
	weight, most, fixed int
	others              int     // clients that want answers, but for one
	has                 *client // whose turn it is in this step; nil: nobody's
	pays                float64
}

// turns begins a step's answers, behind the parts that were planned before.
func (p *planner) turns(most, fixed int) turns {
	t := turns{most: most, fixed: fixed, others: -1}
	for i := range p.parts {
		t.weight += p.s.weigh(p.parts[i].Seq, fixed)
	}
	for _, c := range p.s.clients {
		if c.answers > 0 {
			t.others++
		}
	}
	return t
}

// add adds a row of an answer to the step, if that has room for it or it is the turn of its client.
func (t *turns) add(p *planner, q *Seq) bool {
	w, c := p.s.weigh(q, t.fixed), q.client
	over := w > t.most-t.weight
	if over && (p.s.limits.Pass == 0 || t.has != nil || c.rows > 0 || c.due.rests > 0) {
		return false
	}
	before := len(p.parts)
	if p.add(q); len(p.parts) == before {
		return true
	}
	t.weight += w
	if over {
		t.most += w
		t.has, t.pays = c, float64(t.others)*t.passes(w)
	}
	return true
}

// end takes in that the step is planned.
func (t *turns) end(s *State) {
	for _, c := range s.clients {
		if c == t.has {
			c.due.rests = t.pays
		} else {
			c.due.rests = max(c.due.rests-t.passes(t.weight), 0)
		}
	}
}

// passes is how many times as long as reading the weights a step takes with answers of such a weight. What is known of
// rows may change from one step to the next; what reading weights takes does not.
func (t *turns) passes(weight int) float64 { return float64(t.fixed+weight) / float64(max(t.fixed, 1)) }

// Deep says whether the answers of a step attend to so many positions that what it takes says little about rows.
func (s *State) Deep(parts []Part) bool {
	seen := 0
	for _, p := range parts {
		if p.Answers() {
			seen += p.Seq.done
		}
	}
	return s.limits.Pass > 0 && seen > s.limits.Pass/4
}
