package grammar

// Depth is the number of calls in the longest chain of rules that call each other, from rule 0 on; most, if there
// are more or rules are recursive.
func (g *Grammar) Depth(most int) int {
	d := depths{Grammar: g, most: most, of: make([]int, len(g.Rules))}
	return d.rule(0)
}

type depths struct {
	*Grammar
	most int
	of   []int // by rule: 1 + its depth; 0: not known; busy while it is being found
}

// busy marks the rules of the chain that is being followed.
const busy = -1

func (d *depths) rule(n int) int {
	if d.of[n] == 0 {
		d.of[n] = busy
		d.of[n] = 1 + d.expr(d.Rules[n].Body)
	}
	if d.of[n] == busy {
		return d.most
	}
	return d.of[n] - 1
}

func (d *depths) expr(e Expr) (deepest int) {
	if e.kind == call {
		return min(1+d.rule(e.rule), d.most)
	}
	for _, x := range e.of {
		deepest = max(deepest, d.expr(x))
	}
	if e.list != nil {
		deepest = max(deepest, d.expr(e.list.Others), d.expr(e.list.Sep))
		for _, it := range e.list.Items {
			deepest = max(deepest, d.expr(it.Expr))
		}
		for _, x := range e.list.Free {
			deepest = max(deepest, d.expr(x))
		}
	}
	return deepest
}
