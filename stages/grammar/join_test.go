package grammar

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAdd: grammars keep their meaning within another, and stay what they were.
func TestAdd(t *testing.T) {
	list, err := GBNF("root ::= \"[\" item (\",\" item)* \"]\"\nitem ::= [0-9]+ | root")
	require.NoError(t, err)
	word, err := Regex("[a-z]{2,3}", DefaultLimits())
	require.NoError(t, err)
	members := &Grammar{Rules: []Rule{{Name: "m", Body: Members(&List{
		Items: []Item{{Call(1), true}}, Free: []Expr{Call(2)}, Others: Fail(), Sep: Text(","), Max: -1})},
		{Name: "a", Body: Text("a")}, {Name: "b", Body: Text("b")}}}
	g := &Grammar{Rules: make([]Rule, 1)}
	body := Seq(Text("<"), g.Add(list), Text("|"), g.Add(word), Text("|"), g.Add(members), Text(">"))
	g.Rules[0] = Rule{"root", body}
	p, err := Compile(g, DefaultLimits())
	require.NoError(t, err)
	for text, want := range map[string]bool{
		"<[1,[2]]|abc|a,b>": true, "<[1,[2]]|abc|a>": false, "<[1|abc|a,b>": false, "<[1]|a|a,b>": false, "<[1]|ab|b,a>": false,
	} {
		ok, _, err := p.Matcher().Check(text)
		require.NoError(t, err)
		require.Equal(t, want, ok, text)
	}
	p, err = Compile(list, DefaultLimits())
	require.NoError(t, err)
	ok, _, err := p.Matcher().Check("[7]")
	require.NoError(t, err)
	require.True(t, ok)
}
