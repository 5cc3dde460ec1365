package replay

// begins starts a step: experts are guessed for its first layer.
func (r *replay) begins(s *Step) {
	r.drive.work(r.now)
	r.at, r.next = s, 0
	if r.guess == nil {
		return
	}
	r.guess.Begin(nil)
	if s.Foreseen != nil {
		r.guess.Begin(s.Foreseen.Tokens)
		r.scores(0, false)
	}
}

// chose tells the predictor what a layer has chosen: now experts are guessed for the next one.
func (r *replay) chose(i int) {
	r.next = i + 1
	r.forsake(i)
	if r.guess == nil || r.at.Foreseen == nil {
		return
	}
	l := &r.layers[i]
	for e, x := range l.reads {
		l.there[e] = x != nil && !l.guessed[e]
	}
	r.guess.Learn(i, r.at.Foreseen.ByRow[i], l.there)
	r.scores(i+1, false)
}

// forsake gives up the guess that is being read, if it is for a layer that has not chosen it: there is something
// better to read.
func (r *replay) forsake(i int) {
	g, l := r.drive.guess, &r.layers[i]
	if g == nil || g.layer != i || g.fills || in(r.at.Chosen[i], int32(g.expert)) {
		return
	}
	if r.guess != nil {
		r.guess.Wrong()
	}
	r.drive.guess, l.reads[g.expert], l.guessed[g.expert] = nil, nil, false
	r.policy.Leave(i, g.expert)
	r.result.Bytes -= int64(g.left)
	l.count--
}

// scores gives the predictor the scores of a layer's router, if the trace has them.
func (r *replay) scores(i int, late bool) {
	if r.guess == nil || r.at.Foreseen == nil || i >= len(r.layers) {
		return
	}
	when := 0
	if late {
		when = 1
	}
	if m := r.at.Foreseen.Margins[when][i]; m != nil {
		r.guess.Scores(i, late, m)
	}
}

// likely is what the drive begins to read while it has nothing else to do; nil: nothing.
func (r *replay) likely() *read {
	i, expert, ok := r.expected()
	if !ok {
		return r.fill()
	}
	x := r.bring(i, expert, func(e int32) bool { return r.keeps(i, e) })
	if x != nil {
		r.layers[i].guessed[expert] = true
		r.result.Bytes += int64(x.left)
	}
	return x
}

func (r *replay) has(i, expert int) bool { return r.layers[i].reads[expert] != nil }

func (r *replay) expected() (i, expert int, ok bool) {
	switch {
	case r.guess != nil:
		return r.guess.Next(r.has)
	case r.Prefetch == Oracle && r.next < len(r.layers):
		for _, e := range r.at.Chosen[r.next] {
			if !r.has(r.next, int(e)) {
				return r.next, int(e), true
			}
		}
	}
	return 0, 0, false
}

// keeps says whether an expert may not leave for a guess.
func (r *replay) keeps(i int, expert int32) bool {
	if r.guess != nil {
		return r.guess.Keeps(i, int(expert))
	}
	return in(r.at.Chosen[i], expert)
}

// fill returns a read that fills a free slot while the drive has nothing else to do, by the same rule as
// tiers.Residency; nil: none.
func (r *replay) fill() *read {
	if !r.Fill {
		return nil
	}
	for i := range r.layers {
		l := &r.layers[i]
		if l.count >= l.slots-r.trace.Sizes.Layers[i].Used {
			continue
		}
		for e := range l.reads {
			if l.reads[e] == nil && !r.kept(e) {
				x := r.bring(i, e, nil)
				x.fills = true
				r.result.Bytes += int64(x.left)
				return x
			}
		}
	}
	return nil
}
