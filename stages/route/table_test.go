package route

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What was sent counts until the member speaks again: a second prompt goes elsewhere, unless it begins like the first.
func TestTable(t *testing.T) {
	var table Table
	for _, line := range []string{"b", "a", "c wait=100"} {
		require.NoError(t, table.Hear(parse(t, line)))
	}
	send := func(keys string, not ...string) string {
		c, err := table.Send(&Request{Model: "m", Block: 64, Prompt: 64*len(keys) + 1, Keys: letters(keys), Not: not})
		require.NoError(t, err)
		return c.Member
	}
	one := send("xyz")
	require.Equal(t, one, send("xyzu"), "it will have xyz")
	two := send("pqr", one)
	require.NotEqual(t, one, two)
	require.Equal(t, "c", send("k"), "the others read 193 tokens or more")
	require.NoError(t, table.Hear(parse(t, one)))
	require.Equal(t, one, send("gh"), "it has read all")
	require.NoError(t, table.Hear(parse(t, one+" drained")))
	require.Len(t, table.Members(), 3)
	require.NotEqual(t, one, send("xyz"))
	table.Lose("c")
	table.Lose("z")
	require.Len(t, table.Members(), 2)
	require.Equal(t, two, send("kkkkkkkkkkkkkkkkk"))
	table.Lose(two)
	_, err := table.Send(&Request{Model: "m"})
	require.ErrorContains(t, err, "drained")
}

// What is remembered of one member is bounded, and so is all that is added up.
func TestTableIsBounded(t *testing.T) {
	var table Table
	m := parse(t, "a")
	m.Models[0].Token = longest
	require.NoError(t, table.Hear(m))
	r := &Request{Model: "m", Block: 64, Prompt: math.MaxInt32, Answer: math.MaxInt32,
		Keys: letters(strings.Repeat("xyz", 1000))}
	for range 5 {
		c, err := table.Send(r)
		require.NoError(t, err)
		require.Positive(t, c.First)
		require.LessOrEqual(t, c.First, 2*longest)
		r.Keys = letters("u" + strings.Repeat("xyz", 1000))
	}
	require.Len(t, table.Members()[0].since.keys, mostSent)
	m.Models[0].Wait = -1
	require.EqualError(t, table.Hear(m), `member "a", model "m": wait is -1ns: want 0 to 1000h0m0s`)
	m.Models[0].Wait, m.Models[0].Each = 0, longest+time.Second
	require.ErrorContains(t, table.Hear(m), "each is 1000h0m1s")
	require.ErrorContains(t, table.Hear(Member{}), "without a name")
	require.Len(t, table.Members(), 1)
}
