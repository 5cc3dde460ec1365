package grammar

import "slices"

// List is what stands between the braces of an object: items in their order, some of them optional, then the others as
// often as they like, and among these, in any order, each of Free once. Sep stands between two of them.
type List struct {
	Items    []Item
	Free     []Expr
	Others   Expr
	Sep      Expr
	Min, Max int // of all together; Max < 0: no bound
}

// Item is an element of a List.
type Item struct {
	Expr     Expr
	Required bool
}

// Members is the expression of a list. Its size grows with the number of items times the bounds, and doubles with each
// of Free.
func Members(l *List) Expr { return Expr{kind: members, list: l} }

// counted compiles a list: a node for each number of items passed and counted.
type counted struct {
	*compiler
	*List
	most int // counts go from 0 to most; without Max, most stands for itself and more
}

func (c *compiler) members(l *List, next int32) int32 {
	x := counted{compiler: c, List: l, most: max(1, l.Min)}
	if l.Max >= 0 {
		x.most = l.Max
	}
	after := x.others(next)
	if c.err != nil {
		return 0
	}
	for _, it := range slices.Backward(l.Items) {
		before := make([]int32, len(after))
		x.one(it.Expr, after, func(n int, with int32) {
			ways := []int32{with}
			if !it.Required {
				ways = append(ways, after[n])
			}
			before[n] = x.add(node{op: opSplit, ways: ways})
		})
		if after = before; c.err != nil {
			return 0
		}
	}
	return after[0]
}

// one compiles e as one element more, for each count before it. with is where the element begins, or a dead end.
func (x *counted) one(e Expr, after []int32, yield func(n int, with int32)) {
	compiled := make([]int32, len(after)) // by the count after it; 0: not yet (node 0 is a rule's end)
	for n := range after {
		to := n + 1
		if to > x.most {
			if to = x.most; x.Max >= 0 {
				yield(n, x.add(node{op: opSplit}))
				continue
			}
		}
		if compiled[to] == 0 {
			compiled[to] = x.expr(e, after[to])
		}
		with := compiled[to]
		if n > 0 {
			with = x.expr(x.Sep, with)
		}
		yield(n, with)
	}
}

// others compiles what follows the items, by count.
func (x *counted) others(next int32) []int32 {
	bySet := make([][]int32, 1<<len(x.Free)) // by the set of Free that have come, and count
	for set := len(bySet) - 1; set >= 0 && x.err == nil; set-- {
		here := make([]int32, x.most+1)
		for n := range here {
			here[n] = x.add(node{op: opSplit})
		}
		if x.err != nil {
			return here
		}
		way := func(n int, with int32) {
			x.p.nodes[here[n]].ways = append(x.p.nodes[here[n]].ways, with)
		}
		x.one(x.Others, here, way)
		for i, e := range x.Free {
			if set>>i&1 == 0 {
				x.one(e, bySet[set|1<<i], way)
			}
		}
		if set == len(bySet)-1 {
			for n := min(x.Min, x.most+1); n <= x.most; n++ {
				way(n, next)
			}
		}
		bySet[set] = here
	}
	return bySet[0]
}
