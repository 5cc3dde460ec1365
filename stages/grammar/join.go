package grammar

// Add adds another grammar's rules, and returns the expression of its texts.
func (g *Grammar) Add(other *Grammar) Expr {
	base := len(g.Rules)
	for _, r := range other.Rules {
		g.Rules = append(g.Rules, Rule{r.Name, r.Body.moved(base)})
	}
	return Call(base)
}

// moved is an expression with base added to the numbers of the rules that it calls.
func (e Expr) moved(base int) Expr {
	if e.kind == call {
		e.rule += base
	}
	e.of = movedAll(e.of, base)
	if e.list != nil {
		l := *e.list
		l.Items = append([]Item(nil), l.Items...)
		for i := range l.Items {
			l.Items[i].Expr = l.Items[i].Expr.moved(base)
		}
		l.Free, l.Others, l.Sep = movedAll(l.Free, base), l.Others.moved(base), l.Sep.moved(base)
		e.list = &l
	}
	return e
}

func movedAll(list []Expr, base int) []Expr {
	out := make([]Expr, len(list))
	for i, e := range list {
		out[i] = e.moved(base)
	}
	return out
}
