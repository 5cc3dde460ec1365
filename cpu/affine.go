package cpu

// affineOp is w·x + b. Either may be nil, and w may have fewer values: one for each head of x.
type affineOp struct {
	out, x place
	w, b   []float32
}

func (o *affineOp) row(ex *execution, _, r int) error {
	isa, y, x := ex.device.isa, ex.at(&o.out, r), ex.at(&o.x, r)
	switch {
	case len(o.w) == len(y):
		isa.Mul(y, x, o.w)
		x = y
	case o.w != nil:
		n := len(y) / len(o.w)
		for i, factor := range o.w {
			isa.Scale(y[i*n:][:n], x[i*n:], factor)
		}
		x = y
	}
	if o.b != nil {
		isa.Add(y, x, o.b[:len(y)])
	}
	return nil
}

// positionOp adds the vector of the row's position.
type positionOp struct {
	out, x place
	w      []float32 // by position
}

func (o *positionOp) row(ex *execution, _, r int) error {
	y := ex.at(&o.out, r)
	ex.device.isa.Add(y, ex.at(&o.x, r), o.w[ex.pos[r]*len(y):][:len(y)])
	return nil
}

// tokenTypeOp adds the vector of the row's part of its text.
type tokenTypeOp struct {
	out, x place
	w      []float32 // by part
	sep    int32
}

func (o *tokenTypeOp) row(ex *execution, _, r int) error {
	y := ex.at(&o.out, r)
	kind, last := 0, len(o.w)/len(y)-1
	for _, token := range ex.step.Tokens[ex.step.Spans[ex.span[r]].Row:r] {
		if kind == last {
			break
		}
		if token == o.sep {
			kind++
		}
	}
	ex.device.isa.Add(y, ex.at(&o.x, r), o.w[kind*len(y):][:len(y)])
	return nil
}
