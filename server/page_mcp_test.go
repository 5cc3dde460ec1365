package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// toolServer is a server of tools that speaks MCP over HTTP as a test has it.
type toolServer struct {
	*httptest.Server
	origin string // of the page that may ask

	mu      sync.Mutex
	session int
	heard   []string // methods, and what is told of them
	call    handler
}

// handler answers a call of a tool.
type handler = func(w http.ResponseWriter, r *http.Request, id json.RawMessage, arguments string)

// rpc is a message of its protocol.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name, Cursor string
		Arguments    json.RawMessage
		RequestID    json.RawMessage `json:"requestId"`
	} `json:"params"`
}

func startTools(t *testing.T) *toolServer {
	m := &toolServer{}
	m.Server = httptest.NewServer(m)
	t.Cleanup(func() {
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

func (m *toolServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", m.origin)
	h.Set("Access-Control-Allow-Headers", "content-type, mcp-session-id, mcp-protocol-version")
	h.Set("Access-Control-Allow-Methods", "POST, DELETE")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id")
	if r.Method == http.MethodOptions {
		return
	}
	var q rpc
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &q) // a session that ends has none
	m.mu.Lock()
	defer m.mu.Unlock()
	if q.Method == "initialize" {
		m.session++
	}
	ours := fmt.Sprint("s", m.session)
	m.heard = append(m.heard, strings.TrimSpace(strings.Join([]string{r.Method, q.Method, q.Params.Name}, " ")))
	if q.Method != "initialize" && r.Header.Get("Mcp-Session-Id") != ours {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	h.Set("Content-Type", "application/json")
	switch {
	case q.Method == "initialize":
		h.Set("Mcp-Session-Id", ours)
		result(w, q.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"<b>Desk</b>","version":"1"}}`)
	case r.Header.Get("Mcp-Protocol-Version") != "2025-06-18" && r.Method == http.MethodPost:
		w.WriteHeader(http.StatusBadRequest)
	case q.Method == "tools/list" && q.Params.Cursor == "":
		result(w, q.ID, `{"nextCursor":"2","tools":[{"name":"lamp","description":"Switches the lamp","inputSchema":{"type":"object",`+
			`"properties":{"on":{"type":"boolean"}},"required":["on"]}},{"name":"broken"},{"name":7,"inputSchema":{"type":"object"}}]}`)
	case q.Method == "tools/list":
		many := ""
		for i := range 70 {
			many += fmt.Sprintf(`,{"name":"x.%d","inputSchema":{"type":"object"}}`, i)
		}
		result(w, q.ID, `{"nextCursor":"3","tools":[`+many[1:]+`]}`)
	case q.Method == "tools/call":
		m.mu.Unlock()
		m.call(w, r, q.ID, string(q.Params.Arguments))
		m.mu.Lock()
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func result(w http.ResponseWriter, id json.RawMessage, text string) {
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, text)
}

// told is what it heard since it was asked last.
func (m *toolServer) told() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	heard := m.heard
	m.heard = nil
	return heard
}

// calling has the first question of a conversation answered by a call of a tool, and others by what it gave.
func (s *stage) calling(name, arguments string) (asked chan string) {
	asked = make(chan string, 1)
	s.plays(func(w *pieces, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		if strings.Contains(string(body), `"role":"tool"`) {
			w.content("Done.")
			w.end("stop")
			return
		}
		w.event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":%s,"arguments":%s}}]}}]}`,
			quoted(name), quoted(arguments))
		w.end("tool_calls")
	})
	return asked
}

// withTools opens the page of a server that was started for a server of tools, which is connected.
func withTools(t *testing.T) (s *stage, p *tab, m *toolServer) {
	t.Helper()
	b := startBrowser(t)
	m = startTools(t)
	s = startPage(t, Options{MCP: []string{m.URL}})
	m.origin = s.url
	p = b.open(s.url+"/", 1280, 800, false)
	p.says("#model", "mini-one")
	p.click("#open-settings")
	p.click("#mcp-address")
	p.write(m.URL + "/mcp")
	p.press("Enter")
	p.says(".mcp", "connected: lamp, x.0, ")
	return s, p, m
}

// resultOf is what a request tells the model of a tool.
func resultOf(t *testing.T, body string) string {
	var q struct {
		Messages []struct{ Role, Content string }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &q))
	at := q.Messages[len(q.Messages)-1]
	require.Equal(t, "tool", at.Role)
	return at.Content
}

// TestPageCallsTools: the page lists a server's tools, models hear of them, a call waits until it is let run, and what
// it gave is text.
func TestPageCallsTools(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p, m := withTools(t)
	p.says(".mcp", "<b>Desk</b>")
	p.says(".mcp", "and others, which are too many or too large")
	p.both("mcp")
	require.Equal(t, []string{"POST initialize", "POST notifications/initialized", "POST tools/list", "POST tools/list"}, m.told())
	p.press("Escape")

	m.call = func(w http.ResponseWriter, _ *http.Request, id json.RawMessage, arguments string) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}`+"\n\ndata: ")
		text, _ := json.Marshal("It is " + arguments + " <img src=x onerror=alert(1)>")
		result(w, id, `{"content":[{"type":"text","text":`+string(text)+`},{"type":"image","data":"","mimeType":"image/png"}]}`)
		io.WriteString(w, "\n\n")
	}
	asked := s.calling("lamp", `{"on":true}`)
	p.ask("Switch on the lamp.")
	var body struct {
		Tools []struct {
			Function struct {
				Name, Description string
				Parameters        json.RawMessage
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(s.receive(t, asked)), &body))
	require.Len(t, body.Tools, 64)
	require.Equal(t, "Switches the lamp", body.Tools[0].Function.Description)
	require.JSONEq(t, `{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}`, string(body.Tools[0].Function.Parameters))
	require.Equal(t, "x_0", body.Tools[1].Function.Name)
	p.says(".consent", m.URL+"/mcp runs it, if you let it.")
	p.both("consent")
	require.Empty(t, m.told(), "nothing runs unasked")
	p.click(".consent .first")
	want := "It is {\"on\":true} <img src=x onerror=alert(1)>\n(image that is no text)"
	require.Equal(t, want, resultOf(t, s.receive(t, asked)))
	p.says(last, "Done.")
	require.Equal(t, []string{"POST tools/call lamp"}, m.told())
	p.click(".from-tool summary")
	p.says(".from-tool", "<img src=x onerror=alert(1)>")
	require.Zero(t, p.count("#messages img"))

	p.until(`!document.querySelector(".busy")`)
	m.mu.Lock()
	m.session++ // it has been started again, and knows no session
	m.mu.Unlock()
	p.reload()
	p.until(`document.querySelector("#model").value`)
	p.click("#new-chat")
	p.until(`!document.querySelector("#empty").hidden`)
	p.ask("Off.")
	s.receive(t, asked)
	p.says(".consent", "runs it") // the address was kept
	m.told()
	m.mu.Lock()
	m.session++
	m.mu.Unlock()
	p.click(".consent .first")
	require.Contains(t, resultOf(t, s.receive(t, asked)), "It is")
	require.Equal(t, "POST tools/call lamp", m.told()[0], "and once more, in a new session")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, url := range p.asked {
		require.True(t, strings.HasPrefix(url, s.url+"/") || url == m.URL+"/mcp" || url == "about:blank", url)
	}
}

// TestPageRefusesTools: calls that are refused, stopped, wrong or too long, and servers that the page may not ask.
func TestPageRefusesTools(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p, m := withTools(t)
	other := startTools(t)
	other.origin = "*"
	for text, why := range map[string]string{other.URL + "/mcp": "start sluice with --mcp " + other.URL,
		m.URL + "/mcp": "It is in the list already."} {
		p.eval(`document.querySelector("#mcp-address").value = ""`, nil)
		p.click("#mcp-address")
		p.write(text)
		p.press("Enter")
		p.says("#settings .problem", why)
	}
	require.Empty(t, p.faults)
	p.eval(`void fetch(`+quoted(other.URL)+`, {method: "POST"}).then(() => { window.reached = 1; }, () => { window.kept = 1; })`, nil)
	p.until(`window.kept`)
	require.Empty(t, other.told(), "the browser itself keeps the page from it")
	p.press("Escape")

	asked := s.calling("lamp", `{"on":false}`)
	p.ask("Off.")
	s.receive(t, asked)
	m.told()
	p.click(".consent .button:not(.first)")
	require.Equal(t, "The user refused this call.", resultOf(t, s.receive(t, asked)))
	require.Empty(t, m.told())
	p.says(last, "Done.")

	again := func(text, why string, call handler) {
		t.Helper()
		p.until(`!document.querySelector(".busy")`)
		p.click("#new-chat")
		p.until(`!document.querySelector("#empty").hidden`)
		m.call = call
		p.ask(text)
		s.receive(t, asked)
		p.click(".consent .first")
		if why != "" {
			p.says(".consent", why)
		}
	}
	hangs := make(chan struct{}, 1)
	again("It hangs.", "lamp runs", func(_ http.ResponseWriter, r *http.Request, _ json.RawMessage, _ string) {
		<-r.Context().Done()
		hangs <- struct{}{}
	})
	p.click(".consent .button:not(.first)")
	p.says(".consent", "Stopped.")
	<-hangs
	require.Eventually(t, func() bool { return strings.Contains(fmt.Sprint(m.told()), "notifications/cancelled") }, patient, 20*time.Millisecond)
	again("It is endless.", "too long", func(w http.ResponseWriter, r *http.Request, _ json.RawMessage, _ string) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
				return
			}
		}
	})
	again("It is no JSON.", "no JSON", func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage, _ string) {
		io.WriteString(w, "<html>")
	})
	again("It fails.", "did not run: no such lamp", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage, _ string) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"no such lamp"}}`, id)
	})
	again("It says much.", "", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage, _ string) {
		result(w, id, `{"isError":true,"content":[{"type":"text","text":"`+strings.Repeat("x", 100_100)+`"}]}`)
	})
	got := resultOf(t, s.receive(t, asked))
	require.True(t, strings.HasPrefix(got, "Error: xxx"))
	require.True(t, strings.HasSuffix(got, "x\n(107 characters more)"), len(got))
	p.until(`!document.querySelector(".busy")`)
	p.click("#open-settings")
	p.click(`[aria-label="Remove ` + m.URL + `/mcp"]`)
	p.until(`!document.querySelector(".mcp")`)
	require.Eventually(t, func() bool { return strings.Contains(fmt.Sprint(m.told()), "DELETE") }, patient, 20*time.Millisecond)
}
