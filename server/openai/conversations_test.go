package openai

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConversations: an answer can be gone on with once it is complete, by its owner alone, until others need its room.
func TestConversations(t *testing.T) {
	c := &conversations{}
	require.True(t, c.begin("a", "me", `1`))
	_, ok := c.find("a", "me")
	require.False(t, ok, "it is not complete")
	c.end("a", []byte(`2`))
	c.end("a", []byte(`3`))
	items, ok := c.find("a", "me")
	require.True(t, ok)
	require.Equal(t, `1,2`, items)
	_, ok = c.find("a", "you")
	require.False(t, ok)
	require.True(t, c.begin("b", "me", `1`))
	c.drop("b")
	c.end("b", []byte(`2`))
	_, ok = c.find("b", "me")
	require.False(t, ok)

	require.False(t, c.begin("long", "me", strings.Repeat("x", mostConversation+1)))
	require.True(t, c.begin("longer", "me", strings.Repeat("x", mostConversation-1)))
	c.end("longer", []byte("12"))
	_, ok = c.find("longer", "me")
	require.False(t, ok)
	part := strings.Repeat("x", 1<<18)
	for i := range 40 {
		id := fmt.Sprint(i)
		require.True(t, c.begin(id, "me", part))
		c.end(id, []byte("y"))
		_, ok = c.find("a", "me") // which is used again and again
		require.True(t, ok)
		require.LessOrEqual(t, c.texts.bytes, mostConversations)
		require.Equal(t, c.used.Len(), len(c.byID))
	}
	_, ok = c.find("0", "me")
	require.False(t, ok)
	_, ok = c.find("39", "me")
	require.True(t, ok)
	bytes := 0
	for e := c.used.Front(); e != nil; e = e.Next() {
		bytes += len(e.Value.(*conversation).items) + aroundItems
	}
	require.Equal(t, bytes, c.texts.bytes)
}

// TestGoesOn: what came before comes before the input, and both are what the next answer may go on with.
func TestGoesOn(t *testing.T) {
	const before = `{"role":"user","content":"a"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`
	kept := func(id string) (string, bool) { return before, id == "resp_1" }
	for input, items := range map[string]string{
		`"b"`: `{"role":"user","content":"b"}`,
		` [ {"type":"function_call_output","call_id":"c1","output":"r"} ] `: ` {"type":"function_call_output","call_id":"c1","output":"r"} `,
	} {
		o, fault := decodeResponse(given(`{"previous_response_id":"resp_1","instructions":"S","input":`+input+`}`), testModel, kept, false)
		require.Nil(t, fault)
		require.Equal(t, before+","+items, o.items)
		require.Equal(t, "resp_1", o.previous)
		got, err := json.Marshal(o.Prompts[0].Chat.Messages[:3])
		require.NoError(t, err)
		require.JSONEq(t, `[{"role":"system","content":"S"},{"role":"user","content":"a"},{"role":"assistant","content":"",
			"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{}}}]}]`, string(got))
		require.Len(t, o.Prompts[0].Chat.Messages, 4)
	}
	for body, want := range map[string]string{
		`{"previous_response_id":"resp_2","input":"b"}`: "no such answer of yours is kept",
		`{"previous_response_id":5,"input":"b"}`:        "previous_response_id is 5: want a string",
		`{"previous_response_id":"resp_1"}`:             "input is missing",
		`{"previous_response_id":"resp_1","input":[]}`:  "input is []",
	} {
		_, fault := decodeResponse(given(body), testModel, kept, false)
		require.NotNil(t, fault, body)
		require.Contains(t, fault.Text, want)
	}
}

// TestConversationsOfOthers: a client that stores without end drives out its own conversations, the oldest first, and
// nobody else's.
func TestConversationsOfOthers(t *testing.T) {
	c := &conversations{}
	store := func(id, owner string, bytes int) {
		require.True(t, c.begin(id, owner, strings.Repeat("x", bytes)))
		c.end(id, nil)
	}
	store("quiet", "a", 20_000)
	for i := range 3000 {
		store(strconv.Itoa(i), "b", 15_000)
	}
	_, ok := c.find("quiet", "a")
	require.True(t, ok)
	_, ok = c.find("2999", "b")
	require.True(t, ok)
	_, ok = c.find("0", "b")
	require.False(t, ok)
	require.LessOrEqual(t, c.texts.bytes, mostConversations)
	total := 0
	for _, bytes := range c.texts.owned {
		total += bytes
	}
	require.Equal(t, c.texts.bytes, total)
	c.drop("quiet") // as every answer's end does
	_, ok = c.find("quiet", "a")
	require.True(t, ok)
	c.remove(c.byID["quiet"])
	require.NotContains(t, c.texts.owned, "a")
}
