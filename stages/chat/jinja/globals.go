package jinja

import "math"

// maxRange is the sandbox's bound on range().
const maxRange = 100000

type (
	cycler struct {
		items []Value
		pos   int
	}
	joiner struct {
		sep  Value
		used bool
	}
)

func (*cycler) class() string { return "Cycler" }
func (*joiner) class() string { return "Joiner" }

// call gives nothing the first time and the separator afterwards.
func (j *joiner) call(args callArgs) (Value, error) {
	if len(args.pos)+len(args.names) > 0 {
		return nil, fail(Type, "joiner takes no arguments when called")
	}
	if !j.used {
		j.used = true
		return Str(""), nil
	}
	return j.sep, nil
}

var cyclerMethods = map[string]*builtin{
	"next": takes(0, "", func(_ *run, self Value, _ []Value) (Value, error) {
		c := self.(*cycler)
		v := c.items[c.pos]
		c.pos = (c.pos + 1) % len(c.items)
		return v, nil
	}),
	"reset": takes(0, "", func(_ *run, self Value, _ []Value) (Value, error) {
		self.(*cycler).pos = 0
		return None{}, nil
	}),
}

var globalTable = map[string]*builtin{
	"range": takesAny(makeRange),
	"dict":  takesAny(func(r *run, _ Value, a callArgs) (Value, error) { return r.makeDict("dict", a) }),
	"namespace": takesAny(func(r *run, _ Value, a callArgs) (Value, error) {
		d, err := r.makeDict("namespace", a)
		return &namespace{d}, err
	}),
	"cycler": takesAny(func(_ *run, _ Value, a callArgs) (Value, error) {
		if len(a.pos) == 0 || len(a.names) > 0 {
			return nil, fail(Runtime, "at least one item has to be provided")
		}
		return &cycler{items: a.pos}, nil
	}),
	"joiner": takes(0, "sep", func(_ *run, _ Value, a []Value) (Value, error) {
		if a[0] == nil {
			a[0] = Str(", ")
		}
		return &joiner{sep: a[0]}, nil
	}),
	"lipsum": takesAny(func(*run, Value, callArgs) (Value, error) {
		return nil, fail(Runtime, "lipsum() is not supported: its text is random")
	}),
	"raise_exception": takes(1, "message", func(r *run, _ Value, a []Value) (Value, error) {
		msg, err := r.toText(a[0])
		if err != nil {
			return nil, err
		}
		return nil, &Error{Kind: Raised, Msg: msg}
	}),
	"strftime_now": takes(1, "format", func(r *run, _ Value, a []Value) (Value, error) {
		format, err := asText("strftime_now", a[0])
		if err != nil {
			return nil, err
		}
		return r.strftime(format)
	}),
}

func makeRange(_ *run, _ Value, a callArgs) (Value, error) {
	if len(a.names) > 0 || len(a.pos) < 1 || len(a.pos) > 3 {
		return nil, fail(Type, "range expects 1 to 3 positional arguments, got %d", len(a.pos))
	}
	bounds := [3]int64{0, 0, 1}
	for i, v := range a.pos {
		n, err := asCount("range", v, 0)
		if err != nil {
			return nil, err
		}
		bounds[i] = int64(n)
	}
	rg := &rangeValue{bounds[0], bounds[1], bounds[2]}
	if len(a.pos) == 1 {
		rg.start, rg.stop = 0, bounds[0]
	}
	if rg.step == 0 {
		return nil, fail(Argument, "range() arg 3 must not be zero")
	}
	if rg.len() > maxRange {
		return nil, fail(Overflow,
			"Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return rg, nil
}

// makeDict is dict(mapping or pairs, **named).
func (r *run) makeDict(fn string, a callArgs) (*Dict, error) {
	d := &Dict{}
	if len(a.pos) > 1 {
		return nil, fail(Type, "%s expected at most 1 argument, got %d", fn, len(a.pos))
	}
	if len(a.pos) == 1 {
		if from, ok := a.pos[0].(*Dict); ok {
			if err := r.spend(from.Len()); err != nil {
				return nil, err
			}
			d = from.copy()
		} else if err := r.addPairs(d, a.pos[0]); err != nil {
			return nil, err
		}
	}
	for i, name := range a.names {
		d.Set(name, a.named[i])
	}
	return d, nil
}

func (r *run) addPairs(d *Dict, from Value) error {
	pull, err := r.iterate(from)
	if err != nil {
		return err
	}
	for {
		v, ok, err := pull()
		if err != nil || !ok {
			return err
		}
		pair, err := r.collect(v)
		if err != nil {
			return err
		}
		if len(pair) != 2 {
			return fail(Argument, "dictionary update sequence element has length %d; 2 is required", len(pair))
		}
		if err := r.store(d, pair[0], pair[1]); err != nil {
			return err
		}
	}
}

var intMethods = map[string]*builtin{
	"bit_length": takes(0, "", func(_ *run, self Value, _ []Value) (Value, error) {
		n, _ := asInt(self)
		return Int(n.BitLen()), nil
	}),
	"bit_count": takes(0, "", func(_ *run, self Value, _ []Value) (Value, error) {
		n, _ := asInt(self)
		count := 0
		for i := range n.BitLen() {
			count += int(n.Bit(i))
		}
		return Int(count), nil
	}),
	"conjugate":        takes(0, "", same),
	"is_integer":       takes(0, "", func(*run, Value, []Value) (Value, error) { return Bool(true), nil }),
	"as_integer_ratio": takes(0, "", func(_ *run, v Value, _ []Value) (Value, error) { return Tuple{v, Int(1)}, nil }),
	"to_bytes":         takesAny(unsupportedMethod),
	"from_bytes":       takesAny(unsupportedMethod),
}

var floatMethods = map[string]*builtin{
	"is_integer": takes(0, "", func(_ *run, self Value, _ []Value) (Value, error) {
		f := float64(self.(Float))
		return Bool(f == math.Trunc(f) && !math.IsInf(f, 0)), nil
	}),
	"conjugate":        takes(0, "", same),
	"hex":              takesAny(unsupportedMethod),
	"fromhex":          takesAny(unsupportedMethod),
	"as_integer_ratio": takesAny(unsupportedMethod),
}

func same(_ *run, self Value, _ []Value) (Value, error) { return self, nil }

func unsupportedMethod(_ *run, self Value, _ callArgs) (Value, error) {
	return nil, fail(Runtime, "a method of %s that sluice's templates do not have", self.class())
}
