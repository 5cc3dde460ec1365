package token

import (
	"cmp"
	"slices"
)

// trie finds the keys that begin at a position in a text. The children of a node are contiguous, ordered by label.
type trie struct {
	nodes  []trieNode
	labels []byte  // label of each edge
	kids   []int32 // node that each edge leads to
}

type trieNode struct {
	id           ID // of the key that ends here, or none
	first, count int32
}

type trieKey struct {
	text string
	id   ID
}

// newTrie makes a trie and takes over keys. Of equal keys the smallest id counts; an empty key is never found.
func newTrie(keys []trieKey) trie {
	slices.SortFunc(keys, func(a, b trieKey) int {
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.id, b.id))
	})
	t := trie{nodes: []trieNode{{id: none}}}
	type job struct{ node, lo, hi, depth int }
	queue := []job{{0, 0, len(keys), 0}}
	for len(queue) > 0 {
		j := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for ; j.lo < j.hi && len(keys[j.lo].text) == j.depth; j.lo++ {
			if t.nodes[j.node].id == none && j.depth > 0 {
				t.nodes[j.node].id = keys[j.lo].id
			}
		}
		t.nodes[j.node].first = int32(len(t.labels))
		for lo := j.lo; lo < j.hi; {
			label, hi := keys[lo].text[j.depth], lo+1
			for hi < j.hi && keys[hi].text[j.depth] == label {
				hi++
			}
			queue = append(queue, job{len(t.nodes), lo, hi, j.depth + 1})
			t.labels = append(t.labels, label)
			t.kids = append(t.kids, int32(len(t.nodes)))
			t.nodes = append(t.nodes, trieNode{id: none})
			lo = hi
		}
		t.nodes[j.node].count = int32(len(t.labels)) - t.nodes[j.node].first
	}
	return t
}

// step returns the child of node for label; -1 if no key continues so.
func (t *trie) step(node int32, label byte) int32 {
	n := &t.nodes[node]
	lo, hi := n.first, n.first+n.count
	for lo < hi {
		mid := (lo + hi) / 2
		if t.labels[mid] < label {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < n.first+n.count && t.labels[lo] == label {
		return t.kids[lo]
	}
	return -1
}
