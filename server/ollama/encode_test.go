package ollama

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
)

func testEncoder(s shape) *encoder {
	began := time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC)
	e := newEncoder("demo", began, 7*time.Millisecond, s)
	e.now = func() time.Time { return began.Add(1500 * time.Millisecond) }
	return e
}

var counted = actors.Usage{
	Prompt: 10, Cached: 4, Generated: 3, Prefill: 20 * time.Millisecond, Decode: 30 * time.Millisecond,
}

const (
	begin = `{"model":"demo","created_at":"2026-11-23T01:02:04.5Z",`
	ended = `"total_duration":1500000000,"load_duration":7000000,"prompt_eval_count":10,"prompt_eval_duration":20000000,` +
		`"eval_count":3,"eval_duration":30000000}`
)

// TestLines: each part is a line that says that there is more, the last one what it took.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		shape      shape
		parts, end string
	}{
		{message{}, begin + `"message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}` + "\n" +
			begin + `"message":{"role":"assistant","content":"a\n"},"done":false}` + "\n",
			begin + `"message":{"role":"assistant","content":""},"done":true,"done_reason":"length",`},
		{response{}, begin + `"response":"","thinking":"Hm","done":false}` + "\n" + begin + `"response":"a\n","done":false}` + "\n",
			begin + `"response":"","done":true,"done_reason":"length",`},
	} {
		e, choice := testEncoder(c.shape), &answer.Choice{Usage: counted, Finish: actors.Length}
		dst := e.Begin(nil, choice)
		choice.New = answer.News{Parts: []answer.Part{{Kind: answer.Thought, Text: []byte("Hm")}}}
		dst = e.Part(dst, choice)
		choice.New = answer.News{Parts: []answer.Part{{Text: []byte("a\n")}}}
		dst = e.Part(dst, choice)
		dst = e.Close(e.End(dst, choice), []*answer.Choice{choice})
		require.Equal(t, c.parts+c.end+ended+"\n", string(dst))
	}
	require.Equal(t, `{"error":"a \"b\""}`+"\n", string(testEncoder(message{}).Fault(nil, wire.Invalid("", "", `a "b"`))))
	require.Equal(t, begin+`"response":"","done":true,"done_reason":"load"}`, string(testEncoder(response{}).idle("load")))
}

// TestCalls: calls come when they are complete, with objects as arguments; one that was cut has none.
func TestCalls(t *testing.T) {
	call := func(name, arguments string) answer.Part {
		return answer.Part{Kind: answer.Call, Name: name, ID: "id" + name, Text: []byte(arguments)}
	}
	g := call("g", "{}")
	g.Call = 1
	parts := [][]answer.Part{{{Text: []byte("So")}}, {call("f", "{\n")}, {call("", `"a": `)}, {call("", "1}"), g}, {{Text: []byte("!")}}, {call("h", `{"b":`)}}
	const (
		first  = `{"id":"idf","function":{"index":0,"name":"f","arguments":{"a":1}}}`
		second = `{"id":"idg","function":{"index":1,"name":"g","arguments":{}}}`
		third  = `{"id":"idh","function":{"index":0,"name":"h","arguments":{}}}`
	)
	line := func(text, calls, rest string) string {
		if calls != "" {
			calls = `,"tool_calls":[` + calls + `]`
		}
		return begin + `"message":{"role":"assistant","content":"` + text + `"` + calls + `},` + rest
	}
	e, all := testEncoder(message{}), &answer.Choice{Usage: counted, Finish: actors.Stopped}
	var dst []byte
	for _, p := range parts {
		all.New.Parts = append(all.New.Parts, p...)
		dst = e.Part(dst, &answer.Choice{New: answer.News{Parts: p}})
	}
	const more, end = `"done":false}` + "\n", `"done":true,"done_reason":"stop",` + ended
	require.Equal(t, line("So", "", more)+line("", first, more)+line("!", second, more)+line("", third, end)+"\n",
		string(e.End(dst, &answer.Choice{Usage: counted, Finish: actors.Stopped})))
	whole := testEncoder(message{}).Whole([]*answer.Choice{all})
	for range 2 {
		text := ""
		for piece := range whole {
			text += string(piece)
		}
		require.Equal(t, line("So!", first+","+second+","+third, end), text)
	}
}

// TestWhole: it is the same each time it is asked for, whatever the time.
func TestWhole(t *testing.T) {
	e := testEncoder(message{})
	choice := &answer.Choice{Usage: counted, Finish: actors.Stopped, New: answer.News{Parts: []answer.Part{
		{Kind: answer.Thought, Text: []byte("Hm")}, {Text: []byte("é")}}}}
	all := e.Whole([]*answer.Choice{choice})
	e.now = func() time.Time { return time.Time{} }
	for range 2 {
		var text strings.Builder
		for piece := range all {
			text.Write(piece)
		}
		require.Equal(t, begin+`"message":{"role":"assistant","content":"é","thinking":"Hm"},"done":true,"done_reason":"stop",`+ended,
			text.String())
	}
}

func TestScaled(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1500: "1.5K", 494_032_768: "494.0M", 7_615_616_512: "7.6B"} {
		require.Equal(t, want, scaled(n))
	}
}

func TestEmbeddingsSpelled(t *testing.T) {
	for _, rows := range [][][]float32{nil, {{1, -0.5}}, {{1, 2}, {3, 4}}} {
		var text strings.Builder
		for piece := range spell("demo", &answer.Vectors{Rows: rows, Tokens: 5}, time.Second, 7) {
			text.Write(piece)
		}
		var got struct {
			Model      string
			Embeddings [][]float32
			Total      int64 `json:"total_duration"`
			Load       int64 `json:"load_duration"`
			Count      int   `json:"prompt_eval_count"`
		}
		require.NoError(t, json.Unmarshal([]byte(text.String()), &got), text.String())
		require.Equal(t, len(rows), len(got.Embeddings))
		for i, row := range rows {
			require.Equal(t, row, got.Embeddings[i])
		}
		require.Equal(t, []any{"demo", int64(1e9), int64(7), 5}, []any{got.Model, got.Total, got.Load, got.Count})
	}
}
