package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
)

func testEncoder(most int, omit bool) *encoder {
	return newEncoder(&request{Order: answer.Order{Model: &answer.Model{Name: "demo"}}, most: most, omit: omit}, "msg_1")
}

var counted = actors.Usage{Prompt: 100, Cached: 64, Generated: 7}

// news are parts: text, or thinking behind a question mark, or a call behind an exclamation mark, with a name or not.
func news(text string) (n answer.News) {
	for _, s := range strings.Split(text, "|") {
		p := answer.Part{Text: []byte(s)}
		switch {
		case s == "":
			continue
		case s[0] == '?':
			p = answer.Part{Kind: answer.Thought, Text: []byte(s[1:])}
		case s[0] == '!':
			name, arguments, named := strings.Cut(s[1:], "=")
			if p = (answer.Part{Kind: answer.Call, Name: name, ID: "id" + name, Text: []byte(arguments)}); !named {
				p = answer.Part{Kind: answer.Call, Text: []byte(name)}
			}
		}
		n.Parts = append(n.Parts, p)
	}
	return n
}

// spoken is a stream of parts.
func spoken(e *encoder, finish actors.Finish, stop string, parts ...string) string {
	c := &answer.Choice{Usage: counted}
	dst := e.Begin(nil, c)
	for _, p := range parts {
		c.New = news(p)
		for _, p := range c.New.Parts {
			if p.Name != "" {
				c.Calls++
			}
		}
		dst = e.Part(dst, c)
	}
	c.Finish, c.Stop = finish, stop
	return string(e.Close(e.End(dst, c), []*answer.Choice{c}))
}

const usageText = `{"input_tokens":36,"cache_creation_input_tokens":0,"cache_read_input_tokens":64,"output_tokens":%d}`

// data is what events bring, less the first two, the usage, and the line that repeats the type.
func data(t *testing.T, stream string) (all []string) {
	for i, event := range strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		name, text, ok := strings.Cut(event, "\ndata: ")
		require.True(t, ok, event)
		var typed struct{ Type string }
		require.NoError(t, json.Unmarshal([]byte(text), &typed), text)
		require.Equal(t, "event: "+typed.Type, name)
		switch i {
		case 0:
			require.Equal(t, `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"demo","content":[],`+
				`"stop_reason":null,"stop_sequence":null,"usage":`+fmt.Sprintf(usageText, 0)+`}}`, text)
		case 1:
			require.Equal(t, `{"type":"ping"}`, text)
		default:
			all = append(all, strings.Replace(text, `,"usage":`+fmt.Sprintf(usageText, 7), "", 1))
		}
	}
	return all
}

const (
	stopped = `{"type":"message_stop"}`
	used    = `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null}}`
	turned  = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null}}`
)

// TestStream: thinking and text are blocks of their own, each closed before the next.
func TestStream(t *testing.T) {
	const begin, mid, end = `{"type":"content_block_start","index":%d,"content_block":%s}`,
		`{"type":"content_block_delta","index":%d,"delta":%s}`, `{"type":"content_block_stop","index":%d}`
	thought := fmt.Sprintf(begin, 0, `{"type":"thinking","thinking":"","signature":""}`)
	text := func(i int) string { return fmt.Sprintf(begin, i, `{"type":"text","text":""}`) }
	says := func(i int, s string) string { return fmt.Sprintf(mid, i, `{"type":"text_delta","text":`+s+`}`) }
	calls := func(i int, name string) string {
		return fmt.Sprintf(begin, i, `{"type":"tool_use","id":"id`+name+`","name":"`+name+`","input":{}}`)
	}
	gives := func(i int, s string) string {
		return fmt.Sprintf(mid, i, `{"type":"input_json_delta","partial_json":`+s+`}`)
	}
	thinks := func(s string) string { return fmt.Sprintf(mid, 0, `{"type":"thinking_delta","thinking":`+s+`}`) }
	ends := func(i int) string { return fmt.Sprintf(end, i) }
	for _, c := range []struct {
		omit  bool
		parts []string
		want  []string
	}{
		{false, []string{"Hel", "lo\n"}, []string{text(0), says(0, `"Hel"`), says(0, `"lo\n"`), ends(0), turned, stopped}},
		{false, nil, []string{turned, stopped}},
		{false, []string{"?Hm", "?, 2|Two"}, []string{thought, thinks(`"Hm"`), thinks(`", 2"`), ends(0), text(1), says(1, `"Two"`), ends(1), turned, stopped}},
		{false, []string{"Two", "!f=", "!{\"a\"", "!: 1}|!g={}"}, []string{text(0), says(0, `"Two"`), ends(0), calls(1, "f"), gives(1, `"{\"a\""`),
			gives(1, `": 1}"`), ends(1), calls(2, "g"), gives(2, `"{}"`), ends(2), used, stopped}},
		{true, []string{"?Hm", "?, 2", "Two"}, []string{thought, ends(0), text(1), says(1, `"Two"`), ends(1), turned, stopped}},
	} {
		require.Equal(t, c.want, data(t, spoken(testEncoder(10, c.omit), actors.Stopped, "", c.parts...)))
	}
}

// TestReasons: whole or as a stream, an answer says why it ended.
func TestReasons(t *testing.T) {
	for _, c := range []struct {
		finish actors.Finish
		stop   string
		most   int
		want   string
	}{
		{actors.Stopped, "", 7, `"stop_reason":"end_turn","stop_sequence":null`},
		{actors.Stopped, "a\"", 7, `"stop_reason":"stop_sequence","stop_sequence":"a\""`},
		{actors.Length, "", 7, `"stop_reason":"max_tokens","stop_sequence":null`},
		{actors.Length, "", 8, `"stop_reason":"model_context_window_exceeded","stop_sequence":null`},
	} {
		all := data(t, spoken(testEncoder(c.most, false), c.finish, c.stop, "x"))
		require.Equal(t, `{"type":"message_delta","delta":{`+c.want+`}}`, all[len(all)-2])
		choice := &answer.Choice{Finish: c.finish, Stop: c.stop, Usage: counted}
		require.Contains(t, whole(testEncoder(c.most, false), choice), c.want)
	}
}

func whole(e *encoder, c *answer.Choice) (text string) {
	for piece := range e.Whole([]*answer.Choice{c}) {
		text += string(piece)
	}
	return text
}

func TestWhole(t *testing.T) {
	const thought, text = `{"type":"thinking","thinking":"Hm\n","signature":""}`, `{"type":"text","text":"Two"}`
	for _, c := range []struct {
		thought, text string
		omit          bool
		want          string
	}{
		{"", "Two", false, text}, {"Hm\n", "", false, thought}, {"Hm\n", "Two", false, thought + "," + text}, {"", "", false, ""},
		{"Hm\n", "Two", true, strings.Replace(thought, `Hm\n`, "", 1) + "," + text},
	} {
		choice := &answer.Choice{Finish: actors.Stopped, Usage: counted}
		choice.New = news("?" + c.thought + "|" + c.text)
		if c.thought == "" {
			choice.New = news(c.text)
		}
		require.Equal(t, `{"id":"msg_1","type":"message","role":"assistant","model":"demo","content":[`+c.want+
			`],"stop_reason":"end_turn","stop_sequence":null,"usage":`+fmt.Sprintf(usageText, 7)+`}`, whole(testEncoder(9, c.omit), choice))
	}
}

// TestWholeCalls: calls are blocks in their order; arguments that were cut are no object.
func TestWholeCalls(t *testing.T) {
	for text, want := range map[string]string{
		`So|!f={"a": 1}|!g={}`: `[{"type":"text","text":"So"},{"type":"tool_use","id":"idf","name":"f","input":{"a":1}},` +
			`{"type":"tool_use","id":"idg","name":"g","input":{}}],"stop_reason":"tool_use",`,
		`!f={"a": `: `[{"type":"tool_use","id":"idf","name":"f","input":{}}],"stop_reason":"tool_use",`,
	} {
		choice := &answer.Choice{Finish: actors.Stopped, Usage: counted, Calls: 1, New: news(text)}
		require.Contains(t, whole(testEncoder(9, false), choice), `"content":`+want)
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		fault *wire.Fault
		want  string
	}{
		{wire.Invalid("x", "y", "%q", "no"), `{"type":"invalid_request_error","message":"\"no\""}`},
		{wire.Refused(401, "", "no"), `{"type":"authentication_error","message":"no"}`},
		{wire.Refused(403, "", "no"), `{"type":"permission_error","message":"no"}`},
		{wire.Refused(404, "", "no"), `{"type":"not_found_error","message":"no"}`},
		{wire.Refused(405, "", "no"), `{"type":"invalid_request_error","message":"no"}`},
		{wire.Refused(413, "", "no"), `{"type":"request_too_large","message":"no"}`},
		{wire.Refused(429, "", "no"), `{"type":"rate_limit_error","message":"no"}`},
		{wire.Refused(500, "", "no"), `{"type":"api_error","message":"no"}`},
		{wire.Unavailable("overloaded", "no"), `{"type":"overloaded_error","message":"no"}`},
		{wire.Unavailable("stopping", "no"), `{"type":"overloaded_error","message":"no"}`},
		{wire.Unavailable("engine_failed", "no"), `{"type":"api_error","message":"no"}`},
	} {
		want := `{"type":"error","error":` + c.want + `}`
		require.Equal(t, want, string(appendFault(nil, c.fault)))
		require.Equal(t, "event: error\ndata: "+want+"\n\n", string(testEncoder(1, false).Fault(nil, c.fault)))
	}
}
