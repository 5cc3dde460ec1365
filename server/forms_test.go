package server

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFormFaults: a form that cannot be kept is refused in the words of the request, before anything is generated.
func TestFormFaults(t *testing.T) {
	r := start(t, Options{}, nil)
	const user = `"messages":[{"role":"user","content":"Hi"}]`
	const unique = `{"type":"json_schema","schema":{"uniqueItems":true}}`
	const refused = "schema: #: uniqueItems is not supported, since no grammar knows what an array held before: leave it out, " +
		"and drop what is there twice"
	for _, c := range []struct{ path, body, param, text string }{
		{"/v1/chat/completions", `{` + user + `,"response_format":{"type":"json_schema","json_schema":{"schema":{"items":{"$ref":"#/x"}}}}}`,
			"response_format.json_schema", `response_format.json_schema: schema: #/items: $ref: $ref "#/x": there is no "x" on the way`},
		{"/v1/chat/completions", `{` + user + `,"grammar":"root ::= x"}`, "grammar",
			`grammar: grammar: rule "x" is used or wanted, but nowhere defined: add x ::= …`},
		{"/v1/chat/completions", `{` + user + `,"guided_regex":"("}`, "guided_regex",
			"guided_regex: regular expression: error parsing regexp: missing closing ): `(`"},
		{"/v1/completions", `{"prompt":"a","json_schema":[]}`, "json_schema",
			`json_schema: schema: #: a schema is an object, true or false`},
		{"/v1/responses", `{"input":"a","text":{"format":` + unique + `}}`, "text.format.schema",
			"text.format.schema: " + refused},
		{"/completion", `{"prompt":"a","grammar":"root ::= x"}`, "", `grammar: grammar: rule "x" is used or wanted, but nowhere defined: add x ::= …`},
		{"/v1/messages", `{"max_tokens":5,` + user + `,"output_config":{"format":` + unique + `}}`, "",
			"output_config.format.schema: " + refused},
	} {
		status, body := r.post(t, c.path, c.body)
		require.Equal(t, 400, status, body)
		var fault struct {
			Error struct{ Message, Param string }
		}
		require.NoError(t, json.Unmarshal([]byte(body), &fault))
		require.Equal(t, c.text, fault.Error.Message)
		require.Equal(t, c.param, fault.Error.Param, c.body)
	}
	require.Zero(t, r.engine.Snapshot().Requests)
}

// costlyForm is a body of 130 KB whose schema takes 30 ms and 24 MB to compile; no two of them are the same.
func costlyForm(i int) string {
	var words strings.Builder
	for j := range 8000 {
		fmt.Fprintf(&words, `,"%d"`, 10_000+8000*i+j)
	}
	enum := `{"enum":["both"` + words.String() + `]}`
	return `{"prompt":"a","max_tokens":1,"json_schema":{"allOf":[` + enum + `,` + enum + `]}}`
}

// TestCrowdOfForms: forms are made by turns, few at a time, whoever asks for many: together they cost little, others
// are answered meanwhile, and those who leave give their turns up.
func TestCrowdOfForms(t *testing.T) {
	const crowd, stay = 60, 12
	r := start(t, behindProxy, nil)
	var bodies []string
	for i := range crowd {
		bodies = append(bodies, costlyForm(i))
	}
	before, peak := heap(func() {
		var conns []net.Conn
		for _, body := range bodies {
			conns = append(conns, r.by(t, "192.0.2.1", body))
		}
		require.Eventually(t, func() bool { return r.intake.Waiting() >= crowd/2 }, patient, time.Millisecond)
		for _, body := range []string{`{"prompt":"one","max_tokens":2}`, `{"prompt":"one","max_tokens":2,"grammar":"root ::= \"a\""}`} {
			answer, err := http.ReadResponse(reader(r.by(t, "192.0.2.2", body)), nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, answer.StatusCode)
			require.Positive(t, r.intake.Waiting(), "it was answered among the others")
		}
		for _, conn := range conns[stay:] {
			conn.Close()
		}
		for _, conn := range conns[:stay] {
			answer, err := http.ReadResponse(reader(conn), nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, answer.StatusCode)
		}
	})
	t.Logf("%d MiB", (peak-before)>>20)
	require.Less(t, peak-before, uint64(200<<20))
	idle := func() bool { return r.intake.Used() == 0 && r.intake.Waiting() == 0 }
	require.Eventually(t, idle, patient, time.Millisecond)
}

// TestCrowdOfLongWords: texts that are put into tokens take turns, too, and others are answered meanwhile.
func TestCrowdOfLongWords(t *testing.T) {
	const crowd = 12 // under the race detector more would wait for longer than a request may
	r := start(t, behindProxy, nil)
	body := `{"content":"` + strings.Repeat("ab", 100<<10) + `"}`
	before, peak := heap(func() {
		var conns []net.Conn
		for range crowd {
			conns = append(conns, r.byTo(t, "/tokenize", "192.0.2.1", body))
		}
		require.Eventually(t, func() bool { return r.intake.Waiting() >= 5 }, patient, time.Millisecond)
		answer, err := http.ReadResponse(reader(r.by(t, "192.0.2.2", `{"prompt":"one","max_tokens":2}`)), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode)
		for _, conn := range conns {
			answer, err := http.ReadResponse(reader(conn), nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, answer.StatusCode)
			conn.Close()
		}
	})
	t.Logf("%d MiB", (peak-before)>>20)
	turns := max(1, min(4, runtime.GOMAXPROCS(0)/2)) // exchange.Turn
	require.Less(t, peak-before, uint64(intake+turns*turnsBytes))
	require.Eventually(t, func() bool { return r.intake.Used() == 0 }, patient, time.Millisecond)
}

// turnsBytes is what may be garbage of the text that had a turn when the next one begins.
const turnsBytes = 64 << 20
