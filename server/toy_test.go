package server

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// The toy is a dialect of its own: all that one takes is in this file, and its line in a list.
//
//	POST /toy/say {"text": …, "model": …, "most": n, "times": n, "live": bool}
//
// answers {"said": [text, …]}, or in lines: "+i text", after each answer ".i stop", at the very end "=n" tokens.
// Faults are {"oops": text}, in lines "!text".
func toy(s *answer.Service) answer.Dialect {
	return answer.Dialect{
		Name: "a toy",
		Routes: []answer.Route{
			{Method: fasthttp.MethodPost, Path: "/toy/say", Help: "an answer", Handle: sayToy(s)},
			{Method: fasthttp.MethodGet, Path: "/toy/names", Handle: func(rc *fasthttp.RequestCtx, _ *exchange.Exchange) *wire.Fault {
				for _, m := range s.Entries() {
					rc.WriteString(m.Name + "\n")
				}
				return nil
			}},
			{Method: fasthttp.MethodGet, Path: "/toy/broken", Handle: func(*fasthttp.RequestCtx, *exchange.Exchange) *wire.Fault {
				panic("a toy breaks")
			}},
		},
		Fault: func(dst []byte, f *wire.Fault) []byte {
			return append(wire.AppendString(append(dst, `{"oops":`...), f.Text), '}')
		},
	}
}

func sayToy(s *answer.Service) func(*fasthttp.RequestCtx, *exchange.Exchange) *wire.Fault {
	return func(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
		body, fault := s.Body(rc, x)
		if fault != nil {
			return fault
		}
		f := wire.ReadFields(body.Text, body.Budget)
		o := answer.Order{N: 1}
		text, name, most := "", "", 0
		f.Text("text", &text)
		f.Text("model", &name)
		f.Count("most", 0, 1<<20, &most)
		f.Count("times", 1, answer.MaxChoices, &o.N)
		f.Flag("live", &o.Stream)
		if f.Fault != nil {
			return f.Fault
		}
		m, fault := s.Asked(x, name)
		if fault != nil {
			return fault
		}
		p := m.Sampling
		p.Temp, p.LogProbs = 0, -1
		in := &chat.Input{Messages: []chat.Message{chat.Say("user", text)}, AddGenerationPrompt: true}
		o.Model = m
		o.Prompts = []actors.Request{{Chat: in, MaxTokens: most, Sampling: p, Thoughts: true, IgnoreEOG: most > 0}}
		return s.Answer(rc, x, &o, toyLines{})
	}
}

type toyLines struct{}

func (toyLines) Media() string                                                { return "text/x-toy" }
func (toyLines) Reading(dst []byte, _ actors.Reading, _ time.Duration) []byte { return dst }

func (toyLines) Begin(dst []byte, _ *answer.Choice) []byte { return dst }

func (toyLines) Fault(dst []byte, f *wire.Fault) []byte { return fmt.Appendf(dst, "!%s\n", f.Text) }

func (toyLines) Close(dst []byte, all []*answer.Choice) []byte {
	return fmt.Appendf(dst, "=%d\n", answer.Total(all).Generated)
}

func (toyLines) Part(dst []byte, c *answer.Choice) []byte {
	return fmt.Appendf(dst, "+%d %s\n", c.Index, c.New.Said(answer.Speech))
}

func (toyLines) End(dst []byte, c *answer.Choice) []byte {
	return fmt.Appendf(dst, ".%d %s\n", c.Index, c.Finish)
}

func (toyLines) Whole(all []*answer.Choice) iter.Seq[[]byte] {
	dst := []byte(`{"said":[`)
	for i, c := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(dst, c.New.Said(answer.Speech))
	}
	return slices.Values([][]byte{dst, []byte("]}")})
}

// startToy serves it beside the others.
func startToy(t *testing.T, o Options) *running {
	engine := startEngine(t, nil)
	return startServer(t, engine, o, func(o Options) *Server {
		s := speaking(o, func(s *answer.Service) []answer.Dialect { return append(dialects(s, nil), toy(s)) })
		s.Loaded(Engines(engine))
		return s
	})
}

func TestToySpeaks(t *testing.T) {
	r := startToy(t, Options{})
	status, body := r.post(t, "/toy/say", `{"text":"What is the capital of France?","model":"whatever"}`)
	require.Equal(t, 200, status, body)
	require.Equal(t, `{"said":["The capital of France is Paris."]}`, body)
	status, body = r.post(t, "/toy/say", `{"text":"12 + 30","times":3,"live":true}`)
	require.Equal(t, 200, status, body)
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	said := map[byte]string{}
	for _, line := range lines[:len(lines)-1] {
		switch line[0] {
		case '+':
			said[line[1]] += line[3:]
		case '.':
			require.Equal(t, " stop", line[2:])
			require.Equal(t, "12 + 30 = 42.", said[line[1]])
			said[line[1]] += " It ended."
		}
	}
	require.Equal(t, map[byte]string{'0': "12 + 30 = 42. It ended.", '1': "12 + 30 = 42. It ended.", '2': "12 + 30 = 42. It ended."}, said)
	require.Equal(t, "=36", lines[len(lines)-1])
	require.Contains(t, r.log.String(), `"path":"/toy/say","status":200,"prompt_tokens":14,"generated_tokens":36`)
	_, body = r.get(t, "/toy/names")
	require.Equal(t, r.engine.Info.Name+"\n", body)
	_, body = r.get(t, "/")
	require.Contains(t, body, "with OpenAI's API, Anthropic's API, Ollama's API, llama-server's API, a toy.")
	require.Contains(t, body, "\nPOST /toy/say                  an answer\n")
	_, body = r.get(t, "/metrics")
	require.Contains(t, body, `sluice_http_requests_total{route="/toy/say",status="200"} 2`)
}

// TestFaultsInTheirDialect: whoever refuses a request, routing, access, a handler or the engine, the client is told
// as the dialect of the path has it.
func TestFaultsInTheirDialect(t *testing.T) {
	r := startToy(t, Options{APIKeys: []string{"key"}})
	large := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", maxBody+1, strings.Repeat(" ", maxBody+1))
	for _, c := range []struct{ name, method, path, rest, text string }{
		{"a field", "POST", "say", "Content-Length: 11\r\n\r\n" + `{"text": 5}`, "text is 5: want a string"},
		{"the engine", "POST", "say", "Content-Length: 20015\r\n\r\n" + `{"text": "` + strings.Repeat("1 ", 10_000) + `"}   `,
			"the prompt has "},
		{"method", "GET", "say", "\r\n", "GET is not possible here: use POST"},
		{"encoding", "POST", "say", "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", "Content-Encoding"},
		{"path", "GET", "sing", "\r\n", "there is nothing at"},
		{"panic", "GET", "broken", "\r\n", "the request failed here for a reason that is in the server's log"},
		{"body", "POST", "say", large, "the body has more than 16777216 bytes"},
		{"origin", "POST", "say", "Origin: http://evil.example\r\nContent-Length: 2\r\n\r\n{}", "to let its pages ask"},
		{"key", "POST", "say", "Authorization: Bearer wrong\r\nContent-Length: 2\r\n\r\n{}", "the API key is missing"},
	} {
		for _, d := range []struct{ root, shape string }{{"/toy/", `{"oops":"`}, {"/v1/", `{"error":{"message":"`}} {
			path := d.root + c.path
			if d.root == "/v1/" {
				if c.path == "broken" || c.name == "a field" || c.name == "the engine" {
					continue
				}
				path = strings.Replace(path, "say", "completions", 1)
			}
			key := "Authorization: Bearer key\r\n"
			if c.name == "key" {
				key = ""
			}
			got := r.exchange(t, c.method+" "+path+" HTTP/1.1\r\nHost: localhost\r\n"+key+c.rest)
			_, body, _ := strings.Cut(got, "\r\n\r\n")
			require.True(t, strings.HasPrefix(body, d.shape), "%s %s: %s", c.name, path, got)
			require.Contains(t, body, c.text, c.name)
			require.Contains(t, got, "Content-Type: application/json", c.name)
		}
	}
	require.Contains(t, r.log.String(), "a toy breaks")
	r.log.forget()
}

// exchange sends bytes and returns what is answered at once.
func (r *running) exchange(t *testing.T, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	defer conn.Close()
	go io.WriteString(conn, request)
	conn.SetReadDeadline(time.Now().Add(patient))
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	require.NoError(t, err)
	return string(answer[:n])
}

// TestToyIsCut: a fault in the middle of a stream is its last event, in its dialect; so is one before it, as an answer.
func TestToyIsCut(t *testing.T) {
	r := startToy(t, Options{})
	answer, err := r.http.Post(r.url+"/toy/say", "", strings.NewReader(`{"text":"Hi","live":true,"most":4000}`))
	require.NoError(t, err)
	require.Equal(t, "text/x-toy", answer.Header.Get("Content-Type"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.Shutdown(ctx), context.Canceled)
	status, body := read(t, answer)
	require.Equal(t, http.StatusOK, status)
	require.True(t, strings.HasSuffix(body, "\n!the server is stopping: try again when it is back\n"), body)
}

// TestRoutesMustDiffer: two dialects cannot share a path.
func TestRoutesMustDiffer(t *testing.T) {
	twice := answer.Dialect{Routes: []answer.Route{{Path: "/a"}}}
	require.PanicsWithValue(t, "two routes lead from /a", func() { newRoutes([]answer.Dialect{twice, twice}) })
}
