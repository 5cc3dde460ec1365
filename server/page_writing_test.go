package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// listed spells a model of GET /v1/models.
func listed(name, phase string, can ...string) string {
	list, _ := json.Marshal(can)
	return fmt.Sprintf(`{"id":%q,"status":{"value":%q},"capabilities":%s,"meta":{"n_ctx":4096}}`, name, phase, list)
}

// TestPageOffersModelsThatTalk: models of vectors are not offered, and that a model is not loaded yet is no news.
func TestPageOffersModelsThatTalk(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	s.serves("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"data":[%s,%s,%s,%s]}`, listed("vectors", "loaded", "embedding"), listed("idle", "unloaded", "completion"),
			listed("coming", "loading", "completion", "tools"), listed("a-model-with-a-name-that-is-long-"+strings.Repeat("x", 40), "loaded", "completion"))
	})
	p.reload()
	p.says("#model", "idle")
	var offered []string
	p.eval(`[...document.querySelectorAll("#model option")].map((o) => o.textContent)`, &offered)
	require.Equal(t, []string{"idle", "coming (loading)"}, offered[:2])
	require.Len(t, offered, 3)
	var width float64
	p.eval(`document.querySelector("#model").getBoundingClientRect().width`, &width)
	require.Less(t, width, 120.0, "the arrow stands beside a short name")
	p.shot("picker")
	s.serves("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"data":[%s]}`, listed("vectors", "loaded", "embedding"))
	})
	p.reload()
	p.says("#model", "No model that answers")
}

// TestPageGoesOn: an answer that was cut goes on where it ended, in the same message. The model is real.
func TestPageGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	p.click("#open-settings")
	p.click("#set-max_tokens")
	p.write("4")
	p.press("Escape")
	p.ask("What is the capital of France?")
	p.says(last, "The answer was cut")
	p.until(`!document.querySelector(".busy")`)
	before := p.text(last + " .prose:not(.thought *)")
	require.NotEmpty(t, before)
	require.NotContains(t, before, "Paris.")
	p.eval(`document.querySelector("#set-max_tokens").value = ""; document.querySelector("#set-max_tokens").dispatchEvent(new Event("change"))`, nil)
	p.shot("continue")
	p.click(last + " [data-act=more]")
	p.says(last, "The capital of France is Paris.")
	p.until(`!document.querySelector(".busy") && !document.querySelector("[data-act=more]")`)
	require.Equal(t, 1, p.count(".from-assistant"))
	require.Zero(t, p.count(".versions"))

	asked := make(chan string, 1)
	s.plays(func(w *pieces, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "continue_final_message") {
			asked <- string(body)
			w.content(" and the rest.")
			w.end("stop")
			return
		}
		w.content("One half")
		w.end("length")
	})
	p.ask("Two halves")
	p.click(last + " [data-act=more]")
	p.says(last, "One half and the rest.")
	var body struct {
		Go       bool `json:"continue_final_message"`
		Messages []struct{ Role, Content string }
	}
	require.NoError(t, json.Unmarshal([]byte(s.receive(t, asked)), &body))
	require.True(t, body.Go)
	require.Equal(t, "One half", body.Messages[len(body.Messages)-1].Content)
	p.says(last+" .cost", "84 tokens")
	s.plays(func(w *pieces, _ *http.Request) {
		w.event(`{"choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}`)
		w.end("stop")
	})
	p.ask("Think only")
	p.says(last, "The answer is empty: the model only thought.")
	p.quiet(s.addr)
}

// TestPageKeepsDrafts: what was typed and not sent stays with its conversation, over a reload, too.
func TestPageKeepsDrafts(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	s.plays(func(w *pieces, _ *http.Request) {
		w.content("Yes.")
		w.end("stop")
	})
	typed := func(text string) {
		t.Helper()
		p.until(fmt.Sprintf(`document.querySelector("#prompt").value === %q`, text))
	}
	p.ask("question one")
	p.says(last, "Yes.")
	typed("")
	p.click("#prompt")
	p.write("of the first")
	p.click("#new-chat")
	typed("")
	p.click("#prompt")
	p.write("of none yet")
	p.click("#history .entry a")
	typed("of the first")
	p.reload()
	typed("of the first")
	p.until(`document.activeElement.id === "prompt"`)
	p.press("Enter")
	p.until(`document.querySelectorAll(".from-assistant").length === 2 && !document.querySelector(".busy")`)
	p.reload()
	p.says(last, "Yes.")
	typed("")
	p.click("#new-chat")
	typed("of none yet")
	p.reload()
	typed("of none yet")
}

// TestPageFoldsQuestions: the beginning of a long question is shown, and all of it when it is asked for.
func TestPageFoldsQuestions(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	asked := s.answers("Read.")
	long := ""
	for i := range 1000 {
		long += fmt.Sprintf("line %d of a long text\n", i)
	}
	p.ask(long)
	p.says(last, "Read.")
	require.Contains(t, s.receive(t, asked), "line 999 of a long text")
	p.says(".from-user", "Show all 1,001 lines")
	require.NotContains(t, p.text(".from-user"), "line 100 of")
	p.shot("folded")
	p.click(".from-user .link")
	p.says(".from-user", "line 999 of")
	p.click(".from-user .link")
	p.until(`!document.querySelector(".from-user").innerText.includes("line 999 of")`)
	p.ask("short")
	s.receive(t, asked)
	p.until(`document.querySelectorAll(".from-user").length === 2`)
	require.Zero(t, p.count(".from-user:nth-last-child(2) .link"))
}

// marked is what models write of HTML and footnotes in Markdown.
const marked = "Water is H<sub>2</sub>O, E = mc<sup>2</sup>; press <kbd>Ctrl</kbd>+<kbd>C</kbd> &mdash; <mark>now</mark>.\n" +
	"It has a note.[^1] <sub>open\n\n[^1]: The note, *in full*.\n\n" +
	"<details>\n<summary>More <b>here</b></summary>\n\nInside:\n\n- one\n- two\n\n<details><summary>Deeper</summary>Deep text.</details>\n\n</details>\n\n" +
	"<thinking>\nThis is a paragraph with **bold** text.\n\n<span onclick=\"window.ran=1\">a span</span> <sub onclick=\"window.ran=2\">x</sub>\n\n" +
	"<!-- a comment -->\n\nThe end.\n"

// TestPageShowsMarkup: a little HTML is what it stands for, and the rest is text, but no code.
func TestPageShowsMarkup(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	s.plays(func(w *pieces, _ *http.Request) {
		for at := 0; at < len(marked); at += 11 {
			w.content(marked[at:min(at+11, len(marked))])
		}
		w.end("stop")
	})
	p.ask("Markup, please.")
	p.says(last, "The end.")
	p.until(`!document.querySelector(".busy")`)
	prose := last + " .body > .prose "
	for selector, n := range map[string]int{
		"sub": 1, "sup:not([class])": 2, "kbd": 2, "mark": 1, ".note-mark": 1, ".note-text em": 1, "details": 2, "details > summary b": 1,
		"details > ul li": 2, "details details": 1, ".lines strong": 1, "pre.markup": 1, "[onclick]": 0, "span[onclick]": 0,
	} {
		require.Equal(t, n, p.count(prose+selector), selector)
	}
	said := p.text(prose)
	for _, text := range []string{"H2O", "Ctrl+C — now", "<sub>open", "<thinking>", `<span onclick="window.ran=1">a span</span>`, "<!-- a comment -->"} {
		require.Contains(t, said, text)
	}
	require.NotContains(t, said, "Deep text.", "it is folded")
	p.click(prose + "summary")
	p.says(last, "Inside:")
	p.both("markup")
	p.call("Emulation.setDeviceMetricsOverride", object{"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true}, nil)
	p.both("markup-phone")
	p.quiet(s.addr)
}
