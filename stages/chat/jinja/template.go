package jinja

import (
	"strings"
	"time"
)

// Template is a parsed template. It never changes: any number of goroutines may render it at once.
type Template struct {
	body  []stmt
	roles []string
}

// Parse checks and parses a template's source.
func Parse(source string) (*Template, error) {
	return parse(source, &standard)
}

// Render renders the template with the variables of vars, which it does not change. now is what strftime_now
// shows.
func (t *Template) Render(vars *Dict, now time.Time, limits Limits) (string, error) {
	r := &run{
		lib: &standard, limits: limits, steps: limits.Steps, ask: limits.Steps, memory: limits.Memory, now: now, out: &strings.Builder{},
	}
	own, err := r.clone(vars)
	if err != nil {
		return "", err
	}
	r.vars = own.(*Dict)
	if _, err := r.body(t.body, &r.root); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

// run is the state of one rendering.
type run struct {
	lib    *library
	limits Limits
	steps  int // left
	ask    int // when so many are left, Stop is asked
	memory int // left
	depth  int
	now    time.Time
	vars   *Dict // what the caller passed; ours to modify
	root   scope
	out    *strings.Builder
	escape bool // within {% autoescape true %}
}

// library is what templates find by name.
type library struct {
	filters, tests, globals map[string]*builtin
	methods                 map[string]map[string]*builtin // by class
}

// clone copies the containers of a value: templates may take elements out of lists.
func (r *run) clone(v Value) (Value, error) {
	switch v.(type) {
	case *List, Tuple, *Dict:
	default:
		return v, nil
	}
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.leave()
	switch x := v.(type) {
	case *List:
		items, err := r.cloneAll(x.Items)
		return &List{items}, err
	case Tuple:
		items, err := r.cloneAll(x)
		return Tuple(items), err
	case *Dict:
		values, err := r.cloneAll(x.values)
		// Keys never change, but their slices and index grow: the copy must not share room with the original.
		c := &Dict{keys: x.keys[:len(x.keys):len(x.keys)], values: values}
		c.reindex()
		return c, err
	}
	return v, nil
}

func (r *run) cloneAll(in []Value) ([]Value, error) {
	if err := r.spend(len(in)); err != nil {
		return nil, err
	}
	out := make([]Value, len(in))
	for i, v := range in {
		c, err := r.clone(v)
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	return out, nil
}

// write appends to what is rendered now.
func (r *run) write(s string) error {
	if err := r.room(len(s)); err != nil {
		return err
	}
	if r.out.Len()+len(s) > r.limits.Output {
		return fail(Limit, "the rendered text is longer than %d bytes", r.limits.Output)
	}
	r.out.WriteString(s)
	return nil
}

// capture renders a body into a string of its own.
func (r *run) capture(body func() (flow, error)) (string, flow, error) {
	saved := r.out
	var b strings.Builder
	r.out = &b
	f, err := body()
	r.out = saved
	return b.String(), f, err
}

// body executes statements until one of them jumps.
func (r *run) body(stmts []stmt, s *scope) (flow, error) {
	for _, st := range stmts {
		if err := r.spend(1); err != nil {
			return flowNext, err
		}
		if f, err := st.exec(r, s); err != nil || f != flowNext {
			return f, err
		}
	}
	return flowNext, nil
}

// eval evaluates one node.
func (r *run) eval(e expr, s *scope) (Value, error) {
	if err := r.spend(1); err != nil {
		return nil, err
	}
	if err := r.enter(); err != nil {
		return nil, err
	}
	v, err := e.eval(r, s)
	r.depth--
	return v, err
}

// test evaluates a node to a truth value.
func (r *run) test(e expr, s *scope) (bool, error) {
	v, err := r.eval(e, s)
	if err != nil {
		return false, err
	}
	return truth(v), nil
}
