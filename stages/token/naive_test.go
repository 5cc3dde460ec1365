package token

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestCutterIsTheSearch compares the cutter with what llama.cpp does: it searches the text for each special token, the
// longest first, and cuts it out wherever it stands.
func TestCutterIsTheSearch(t *testing.T) {
	texts := []string{"<a>", "<ab>", "a>", "\n\n", "\n\n\n", "<", ">b<", " "}
	rapid.Check(t, func(t *rapid.T) {
		var tokens []string
		var attrs []attr
		for _, text := range texts {
			if rapid.Bool().Draw(t, text) {
				strip := rapid.SampledFrom([]attr{0, leftStrip, rightStrip, leftStrip | rightStrip}).Draw(t, "strip")
				tokens, attrs = append(tokens, text), append(attrs, control|strip)
			}
		}
		parts := []string{"<a>", "<ab>", "a", "b", "\n", " ", "  ", "<", ">"}
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "parts"), "")
		c := newCutter(tokens, attrs, func(attr) bool { return true })
		require.Equal(t, search(tokens, attrs, text), c.fragments(text, new(scratch)), "%q", text)
	})
}

func search(tokens []string, attrs []attr, text string) []fragment {
	if text == "" {
		return nil
	}
	order := make([]ID, len(tokens))
	for i := range order {
		order[i] = ID(i)
	}
	slices.SortStableFunc(order, func(a, b ID) int { return len(tokens[b]) - len(tokens[a]) })
	parts := []fragment{{0, len(text), none}}
	for i := 0; i < len(order); {
		same := i // tokens of one length are searched together: the leftmost is cut first
		for same < len(order) && len(tokens[order[same]]) == len(tokens[order[i]]) {
			same++
		}
		var next []fragment
		for _, p := range parts {
			next = append(next, searchPart(tokens, attrs, order[i:same], text, p)...)
		}
		parts, i = next, same
	}
	return parts
}

func searchPart(tokens []string, attrs []attr, ids []ID, text string, p fragment) (out []fragment) {
	for p.id == none && p.start < p.end {
		at, id := -1, none
		for _, x := range ids {
			if i := strings.Index(text[p.start:p.end], tokens[x]); i >= 0 && (at < 0 || p.start+i < at) {
				at, id = p.start+i, x
			}
		}
		if at < 0 {
			break
		}
		left := text[p.start:at]
		if attrs[id]&leftStrip != 0 {
			left = strings.TrimRight(left, " \t\n\v\f\r")
		}
		if left != "" {
			out = append(out, fragment{p.start, p.start + len(left), none})
		}
		end := at + len(tokens[id])
		out = append(out, fragment{at, end, id})
		if attrs[id]&rightStrip != 0 {
			end = p.end - len(strings.TrimLeft(text[end:p.end], " \t\n\v\f\r"))
		}
		p.start = end
	}
	if p.start < p.end {
		out = append(out, p)
	}
	return out
}

// joins says what pairs of letters become, and at which rank.
type joins map[string]int32

func (j joins) join(text string, left, right *symbol) (int32, ID, bool) {
	rank, ok := j[text[left.start:left.end]+" "+text[right.start:right.end]]
	return rank, 0, ok
}

// TestChainIsTheDefinition compares the chain with byte-pair encoding as it is defined: merge the best pair, the
// leftmost of equals, and look again.
func TestChainIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 1, 40, -1).Draw(t, "text")
		j, known := joins{}, []string{"a", "b", "c"}
		for rank := range rapid.Int32Range(0, 12).Draw(t, "merges") {
			left, right := rapid.SampledFrom(known).Draw(t, "left"), rapid.SampledFrom(known).Draw(t, "right")
			if _, ok := j[left+" "+right]; !ok {
				j[left+" "+right] = rank
				known = append(known, left+right)
			}
		}
		var c chain
		for i := range len(text) {
			c.add(i, i+1, 0)
		}
		c.merge(text, j)
		var got []string
		for i := int32(0); i >= 0; i = c.symbols[i].next {
			got = append(got, text[c.symbols[i].start:c.symbols[i].end])
		}
		require.Equal(t, j.define(strings.Split(text, "")), got)
	})
}

func (j joins) define(parts []string) []string {
	for {
		best, at := int32(-1), 0
		for i := 1; i < len(parts); i++ {
			if rank, ok := j[parts[i-1]+" "+parts[i]]; ok && (best < 0 || rank < best) {
				best, at = rank, i
			}
		}
		if best < 0 {
			return parts
		}
		parts[at-1] += parts[at]
		parts = slices.Delete(parts, at, at+1)
	}
}
