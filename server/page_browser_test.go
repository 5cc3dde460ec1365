package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// last is the newest answer on the page.
const last = ".from-assistant:last-child"

// ask writes a message and sends it.
func (p *tab) ask(text string) {
	p.t.Helper()
	p.click("#prompt")
	p.write(text)
	p.press("Enter")
}

// atDesk opens the page on a screen of its own, on a desk, and starts the server behind it.
func atDesk(t *testing.T) (s *stage, p *tab) {
	t.Helper()
	b := startBrowser(t)
	s = startPage(t, Options{})
	p = b.open(s.url+"/", 1280, 800, false)
	p.says("#model", "mini-one")
	return s, p
}

// TestPageTalks: a person types, reads, asks again, in other words, of another model, and finds it all again. The
// models are real.
func TestPageTalks(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	p.says("#empty", "mini-one answers from this machine: 26.2 million parameters")
	p.shot("empty")
	p.ask("What is the capital of France?")
	p.says(last, "The capital of France is Paris.")
	p.says(last+" .cost", "tokens/s")
	require.Contains(t, p.text(last+" .cost"), "mini-one")

	p.eval(`document.querySelector("#model").value = "mini-two"; document.querySelector("#model").dispatchEvent(new Event("change"))`, nil)
	p.ask("12 + 30")
	p.says(last, "12 + 30 = 42.")
	p.says(last+" .cost", "mini-two") // the other model has answered: this comes at the end
	require.Equal(t, 2, p.count(".from-assistant"))

	p.click(last + " [data-act=again]")
	p.says(last+" .versions", "2 of 2")
	p.says(last, "12 + 30 = 42.")
	p.until(`!document.querySelector(".busy")`)
	p.click(last + " .versions button:first-child")
	p.says(last+" .versions", "1 of 2")

	p.until(`document.activeElement?.getAttribute("aria-label") === "Later version"`) // the other one is at its end
	p.click("#prompt")
	p.press("ArrowUp")
	p.until(`document.activeElement?.getAttribute("aria-label") === "Edited message"`)
	p.eval(`document.activeElement.select()`, nil)
	p.write("What is the capital of Japan?")
	p.press("Enter")
	p.says(last, "Tokyo")
	p.says(".from-user:nth-last-child(2) .versions", "2 of 2")
	require.NotContains(t, p.text("#messages"), "12 + 30", "it is the other version's")

	p.until(`!document.querySelector(".busy")`)
	p.reload()
	p.says("#history", "What is the capital of France?")
	p.says(last, "Tokyo")
	p.says("#model", "mini-two")
	var chosen string
	p.eval(`document.querySelector("#model").value`, &chosen)
	require.Equal(t, "mini-two", chosen)
	p.click("#new-chat")
	p.says("#empty h2", "What shall we talk about?")
	p.click("#history .entry a")
	p.says(last, "Tokyo")
	p.click("#history .entry .icon-button:last-child")
	p.says("#history", "Nothing yet.")
	p.click("#toast .link")
	p.says("#history", "What is the capital of France?")
	p.quiet(s.addr)
}

// TestPageStreams: an answer is shown while it comes, stops when it is told to, and the server hears of it.
func TestPageStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	more, gone := make(chan string, 4), make(chan string, 4)
	s.plays(func(w *pieces, r *http.Request) {
		for {
			select {
			case text := <-more:
				w.content(text)
			case <-r.Context().Done():
				gone <- "the client"
				return
			}
		}
	})
	p.ask("Tell me something long.")
	p.until(`document.querySelector(".pulse")`)
	more <- "First "
	p.says(last, "First")
	more <- "second."
	p.says(last, "First second.")
	p.until(`document.querySelector("#send").hidden && !document.querySelector("#stop").hidden`)
	p.click("#stop")
	s.receive(t, gone)
	p.says(last, "Stopped.")
	require.Contains(t, p.text(last), "First second.", "what came stays")
	p.until(`document.activeElement.id === "prompt" && !document.querySelector("#send").hidden`)

	p.click(last + " [data-act=again]")
	more <- "Another."
	p.says(last, "Another.")
	p.press("Escape")
	s.receive(t, gone)
	p.says(last, "Stopped.")
	p.says(last+" .versions", "2 of 2")

	s.plays(func(w *pieces, r *http.Request) { w.content("Half an ans") }) // and the connection ends
	p.ask("And now?")
	p.says(last+" .problem", "The answer broke off")
	p.says(last, "Half an ans")
	s.plays(func(w *pieces, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, `{"error":{"message":"too many requests wait: try again later","code":"overloaded"}}`)
	})
	p.click(last + " .problem button")
	p.says(last+" .problem", "too many requests wait: try again later")
	p.shot("error")
	s.plays(nil)
	p.click(last + " .problem button")
	p.until(`document.querySelector(".from-assistant:last-child .cost")?.innerText.includes("tokens/s")`)
}

// wicked is an answer by a model that wants the page to run something, or to tell somebody.
const wicked = "# Title <img src=x onerror=\"window.ran=1\">\n\n<script>window.ran=2</script>\n\n" +
	"<iframe srcdoc=\"<script>parent.ran=3</script>\"></iframe>\n\n" +
	"[click](javascript:window.ran=4) [data](data:text/html,<script>window.ran=5</script>) [vb](vbscript:x) [ok](https://example.org/a)\n\n" +
	"![pixel](http://127.0.0.1:9/leak?secret) <style>body{display:none}</style> <svg onload=window.ran=6>\n\n" +
	"| a | b |\n|---|---|\n| <b onmouseover=window.ran=7>x</b> | `<script>window.ran=8</script>` |\n\n" +
	"```html\n<script>window.ran=9</script><img src=x onerror=window.ran=10>\n```\n\n" +
	"```\"onload=\"window.ran=11\nx\n```\n\n&lt;script&gt;window.ran=12&lt;/script&gt; &#60;img src=x onerror=window.ran=13&#62;\n\n" +
	"<a href=\"javascript:window.ran=14\">a</a> <form action=http://127.0.0.1:9/><button>b</button></form>\n\nThe end.\n"

// TestPageRunsNothing: whatever a model writes is text, in answers, thoughts, calls and names. If it were more, the
// policy would stop it: that is tried too.
func TestPageRunsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	s.plays(func(w *pieces, r *http.Request) {
		w.event(`{"choices":[{"index":0,"delta":{"reasoning_content":%s}}]}`, quoted(wicked))
		for at := 0; at < len(wicked); at += 7 { // elements that are half there, too
			w.content(wicked[at:min(at+7, len(wicked))])
		}
		w.event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":%s,"arguments":%s}}]}}]}`,
			quoted("<script>window.ran=15</script>"), quoted(`{"a":"<img src=x onerror=window.ran=16>"}`))
		w.end("tool_calls")
	})
	p.ask(wicked)
	p.says(last, "The end.")
	p.until(`document.querySelector(".call .code") && !document.querySelector(".busy")`)
	p.click(last + " .thought summary")
	p.says(last+" .thought .prose", "The end.")
	require.Zero(t, p.count("#messages :is(script, img, iframe, style, form[action], object, embed, link, [onerror], [onload], [onmouseover], [style])"))
	require.Equal(t, 4, p.count("#messages a"), "of what looks like links, two in the thoughts and the same two in the answer are")
	require.Equal(t, 2, p.count(`#messages a[href="http://127.0.0.1:9/leak?secret"]`), "a picture is a link, and nobody fetches it")
	require.Equal(t, 2, p.count(`#messages a[href="https://example.org/a"][rel~=noopener]`))
	p.shot("wicked")
	var ran any
	p.eval(`window.ran ?? null`, &ran)
	require.Nil(t, ran)
	p.quiet(s.addr)

	for name, attempt := range map[string]string{
		"HTML from text": `document.body.innerHTML = "<b>x</b>"`,
		"a parser":       `new DOMParser().parseFromString("<b>x</b>", "text/html")`,
		"a script":       `const s = document.createElement("script"); s.textContent = "window.ran = 17"; document.body.append(s)`,
	} {
		stopped := false
		p.eval(`(() => { try { `+attempt+`; return window.ran === undefined && false; } catch (e) { return e instanceof TypeError; } })()`, &stopped)
		require.True(t, stopped, "%s: the policy lets it pass", name)
	}
	for name, attempt := range map[string]string{
		"another server":  `fetch("http://127.0.0.1:9/").then(() => false, () => true)`,
		"another's image": `new Promise((done) => { const i = new Image(); i.onerror = () => done(true); i.onload = () => done(false); i.src = "http://127.0.0.1:9/x.png"; })`,
	} {
		stopped := false
		p.eval(attempt, &stopped)
		require.True(t, stopped, name)
	}
	p.until(`window.ran === undefined`)
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Contains(t, strings.Join(p.faults, "\n"), "Content Security Policy", "it was the policy that stopped them")
}

// TestPageIsNotFrozen: what takes libraries or browsers very long is shown as text, all of it, in seconds.
func TestPageIsNotFrozen(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	lists := ""
	for i := range 400 {
		lists += strings.Repeat("  ", i) + "- item\n"
	}
	s, p := atDesk(t)
	answers := 0
	for name, text := range map[string]string{
		"lists":     lists,
		"templates": "```javascript\n" + strings.Repeat("`${", 13_000) + "\n```\n",
		"quotes":    strings.Repeat(">", 2000) + "x\n",
		"emphasis":  strings.Repeat("**", 10_000) + "x\n",
		"headings":  strings.Repeat("# x\n", 130_000),
	} {
		s.plays(func(w *pieces, _ *http.Request) {
			w.content(text)
			w.content("\n\nThe end.")
			w.end("stop")
		})
		p.ask(name)
		answers++
		p.until(fmt.Sprintf(`document.querySelectorAll(".from-assistant").length === %d && !document.querySelector(".busy") &&
			document.querySelector("%s").textContent.includes("The end.")`, answers, last))
		var shown, alive int
		p.eval(`document.querySelector("`+last+` .body > .prose").textContent.length`, &shown)
		require.Greater(t, shown, len(text)/10, name)
		p.eval(`new Promise((done) => requestAnimationFrame(() => done(1)))`, &alive)
		require.Equal(t, 1, alive, name)
	}
	p.quiet(s.addr)
}

// rich is an answer with all that Markdown has.
const rich = "## Reversing a string\n\nStrings in Go are **bytes**; what people see as letters are *runes*, so a reversal has to work on `[]rune`:\n\n" +
	"```go\n// Reverse returns s with its runes in the opposite order.\nfunc Reverse(s string) string {\n\tr := []rune(s)\n\tfor i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {\n\t\tr[i], r[j] = r[j], r[i]\n\t}\n\treturn string(r)\n}\n```\n\n" +
	"It has limits:\n\n1. Combining marks move away from their letters.\n2. Flags and families are several runes:\n   - 🇫🇷 becomes another flag,\n   - a family falls apart.\n\n" +
	"| input | output | right? |\n|:--|:--|--:|\n| `abc` | `cba` | yes |\n| `naïve` | `evïan` | yes |\n\n> Measure before you make it faster.\n\n- [x] tested\n- [ ] fuzzed\n\nSee [the blog](https://go.dev/blog/strings) for more &amp; better.\n"

// TestPageShows: Markdown, code with its copy, thoughts that fold, and calls of tools whose results are given by hand.
func TestPageShows(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	asked := make(chan string, 8)
	s.plays(func(w *pieces, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		w.event(`{"choices":[{"index":0,"delta":{"reasoning_content":"The user wants *code*."}}]}`)
		w.content(rich)
		w.end("stop")
	})
	p.click("#open-settings")
	p.click("#set-system")
	p.write("You are brief.")
	p.click("#set-temperature")
	p.write("0.3")
	p.click("#set-stop")
	p.write("END\n")
	p.shot("settings")
	p.press("Escape")
	p.until(`!document.querySelector("#settings").open`)
	p.ask("How do I reverse a string in Go?")
	p.says(last+" .cost", "42 tokens · 35 tokens/s")
	p.says(last+" .cost", "prompt 20, 8 cached")
	var request map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.receive(t, asked)), &request))
	require.Equal(t, "mini-one", request["model"])
	require.Equal(t, 0.3, request["temperature"])
	require.Equal(t, []any{"END"}, request["stop"])
	require.NotContains(t, request, "top_p", "what was not set is not sent")
	require.Equal(t, []any{object{"role": "system", "content": "You are brief."},
		object{"role": "user", "content": "How do I reverse a string in Go?"}}, request["messages"])

	require.Equal(t, 1, p.count(last+" pre .hl-keyword:first-of-type"))
	require.Equal(t, 2, p.count(last+" tbody tr"))
	require.Equal(t, 2, p.count(last+" .check"))
	require.Contains(t, p.text(last), "more & better")
	require.Contains(t, p.text(last+" .thought summary"), "Thought")
	require.NotContains(t, p.text(last), "The user wants", "thoughts are folded")
	p.call("Browser.grantPermissions", object{"permissions": []string{"clipboardReadWrite", "clipboardSanitizedWrite"}}, nil)
	p.click(last + " .code button")
	p.says("#announce", "Copied")
	p.shot("rich")
	p.dark(true)
	p.shot("rich-dark")
	for theme, ground := range map[string]string{"": "rgb(19, 21, 23)", "dark": "rgb(19, 21, 23)", "light": "rgb(251, 251, 250)"} {
		var is string
		p.eval(`document.documentElement.dataset.theme = `+quoted(theme)+`; getComputedStyle(document.body).backgroundColor`, &is)
		require.Equal(t, ground, is, "what is set counts before what the system prefers")
	}

	s.plays(func(w *pieces, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		if strings.Contains(string(body), `"role":"tool"`) {
			w.content("It is sunny in Paris.")
			w.end("stop")
			return
		}
		for i, part := range []string{`{"city"`, `: "Paris"}`} {
			name := []string{`"id":"call_1","type":"function",`, ""}[i]
			function := []string{`"name":"get_weather",`, ""}[i]
			w.event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,%s"function":{%s"arguments":%s}}]}}]}`, name, function, quoted(part))
		}
		w.end("tool_calls")
	})
	p.ask("What is the weather in Paris?")
	p.says(last+" .call", "get_weather")
	s.receive(t, asked)
	p.click(last + " .calls textarea")
	p.write("sunny, 21 °C")
	p.shot("tools")
	p.click(last + " .calls button[type=submit]")
	p.says(last, "It is sunny in Paris.")
	require.NoError(t, json.Unmarshal([]byte(s.receive(t, asked)), &request))
	messages := request["messages"].([]any)
	require.Equal(t, object{"role": "tool", "tool_call_id": "call_1", "content": "sunny, 21 °C"}, messages[len(messages)-1])
	require.Contains(t, fmt.Sprint(messages[len(messages)-2]), `arguments:{"city": "Paris"}`)
	p.quiet(s.addr)
}

// TestPageShowsLittle: an empty answer is said to be one, and names of characters are these.
func TestPageShowsLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	s.plays(func(w *pieces, _ *http.Request) { w.end("stop") })
	p.ask("Nothing, please.")
	p.says(last, "The answer is empty.")
	s.plays(func(w *pieces, _ *http.Request) {
		w.content("a &mdash; b &hellip; &times; &nonsense; &amp;")
		w.end("stop")
	})
	p.ask("Characters, please.")
	p.says(last, "a — b … × &nonsense; &")
	p.quiet(s.addr)
}

// TestPageAsksForTheKey: without one the page loads and asks; a wrong one is said to be wrong.
func TestPageAsksForTheKey(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	b := startBrowser(t)
	s := startPage(t, Options{APIKeys: []string{"open sesame"}})
	p := b.open(s.url+"/", 390, 844, false)
	p.says("#key", "This server wants a key")
	p.write("guess")
	p.press("Enter")
	p.says("#key", "not one of the server’s")
	p.shot("key")
	var model string
	p.eval(`document.querySelector("#model").value`, &model)
	require.Empty(t, model, "the word that stands for the list is no model's name")
	p.click("#key-value")
	p.write("open sesame")
	p.press("Enter")
	p.says("#model", "mini-one")
	p.ask("12 + 30")
	p.says(last, "12 + 30 = 42.")
	p.reload()
	p.says("#model", "mini-one")
	require.Zero(t, p.count("dialog[open]"))
}

// TestPageWatchesTheEngine: the live view moves while an answer is computed.
func TestPageWatchesTheEngine(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	b := startBrowser(t)
	s := startPage(t, Options{})
	p := b.open(s.url+"/#/engine", 1280, 900, true)
	p.says("#engine", "nobody asks")
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			body := `{"model":"mini-one","max_tokens":400,"ignore_eos":true,"messages":[{"role":"user","content":"Tell me a story."}]}`
			answer, err := http.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
			if err != nil {
				return
			}
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
	}()
	p.until(`parseFloat(document.querySelector("#engine .figure strong")?.innerText.replace(",", "")) > 0`)
	p.until(`document.querySelectorAll("#engine .chart .cause-computing").length > 2`)
	require.Contains(t, p.text("#engine .actors"), "model/mini-one/scheduler")
	require.Contains(t, p.text("#engine .actors"), "step ")
	require.Contains(t, p.text("#engine .legend"), "computing")
	p.shot("engine-dark")
	p.dark(false)
	p.shot("engine")
	p.call("Emulation.setDeviceMetricsOverride", object{"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true}, nil)
	time.Sleep(100 * time.Millisecond)
	p.shot("engine-phone")
	close(stop)
	<-done
	http.DefaultClient.CloseIdleConnections()
	p.quiet(s.addr)
}
