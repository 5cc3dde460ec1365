package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// downloaded waits for the file that the page has the browser save, and takes it away.
func (p *tab) downloaded(dir string) (name, text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		all, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		if len(all) == 0 {
			return false
		}
		data, err := os.ReadFile(all[0])
		name, text = filepath.Base(all[0]), string(data)
		return err == nil && json.Valid(data) && os.Remove(all[0]) == nil
	}, patient, 20*time.Millisecond)
	return name, text
}

// gives puts a file into a field for files.
func (p *tab) gives(selector, name, text string) {
	p.t.Helper()
	p.eval(fmt.Sprintf(`(() => { const d = new DataTransfer(), e = document.querySelector(%s); d.items.add(new File([%s], %s));
		e.files = d.files; e.dispatchEvent(new Event("change")); })()`, quoted(selector), quoted(text), quoted(name)), nil)
}

// echoes answers every question with its own last message.
func (s *stage) echoes() {
	s.plays(func(w *pieces, r *http.Request) {
		var body struct {
			Messages []struct{ Content string }
		}
		json.NewDecoder(r.Body).Decode(&body)
		w.content("You said: " + body.Messages[len(body.Messages)-1].Content)
		w.end("stop")
	})
}

// TestPageMovesConversations: what one browser saves another takes in, all of it, and nothing that is none.
func TestPageMovesConversations(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	s.echoes()
	dir := t.TempDir()
	p.browser.call("", "Browser.setDownloadBehavior", object{"behavior": "allow", "downloadPath": dir, "browserContextId": p.context}, nil)
	for i, text := range []string{"The fox and the grapes", "A recipe for bread"} {
		p.click("#new-chat")
		p.ask(text)
		p.says(last, "You said: "+text)
		p.until(fmt.Sprintf(`document.querySelectorAll("#history .entry").length === %d && !document.querySelector(".busy")`, i+1))
	}
	p.click("#export")
	_, all := p.downloaded(dir)
	p.click("#open-settings")
	p.click("#save-one")
	name, one := p.downloaded(dir)
	require.Equal(t, "A recipe for bread.json", name)
	require.NotContains(t, one, "grapes")

	p.press("Escape")
	p.until(`!document.querySelector("#settings").open`)
	p.click("#search")
	p.write("GRAPES said")
	p.until(`document.querySelectorAll("#history .entry").length === 1`)
	require.Contains(t, p.text("#history .excerpt"), "The fox and the grapes")
	p.both("search")
	p.write(" nowhere")
	p.says("#history", "Nothing is found.")
	p.eval(`document.querySelector("#search").value = ""; document.activeElement.blur()`, nil)
	p.call("Input.dispatchKeyEvent", object{"type": "keyDown", "key": "k", "modifiers": 2, "windowsVirtualKeyCode": 75}, nil)
	p.until(`document.activeElement.id === "search"`)

	q := p.browser.open(s.url+"/", 1280, 800, false)
	q.says("#history", "Nothing yet.")
	q.gives("#import-file", "all.json", all)
	q.says("#toast", "2 conversations are here now.")
	q.until(`document.querySelectorAll("#history .entry").length === 2`)
	q.click("#history .entry a")
	q.says(last, "You said: A recipe for bread")
	for file, text := range map[string]string{
		"text.json":  "no JSON",
		"other.json": `{"conversations":[]}`,
		"loop.json":  `{"format":"sluice-conversations","conversations":[{"id":"00000000aa","head":"00000000ab","messages":{"x":{"id":"00000000ab","parent":"00000000ab","role":"user","content":"x"}}}]}`,
	} {
		q.gives("#import-file", file, text)
		q.says("#toast", map[string]string{"text.json": "is no JSON", "other.json": "has no conversations", "loop.json": "0 conversations"}[file])
	}
	wrong := strings.NewReplacer(`"role": "assistant"`, `"role": "assistant", "stats": {"rate": "<b>"}, "calls": 7, "model": {}`, "A recipe", "One more").
		Replace(one)
	q.gives("#import-file", "wrong.json", wrong)
	q.says("#toast", "is here now.")
	q.says("#history", "One more")
	require.Equal(t, 2, q.count("#history .entry"), "it is the same one")
	q.quiet(s.addr)
	p.quiet(s.addr)
}

// TestPageOwnSystemPrompt: a conversation may have a system prompt of its own, which stays with it; others are kept to
// be chosen again.
func TestPageOwnSystemPrompt(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	asked := s.answers("Yes.")
	system := func() string {
		t.Helper()
		var body struct {
			Messages []struct{ Role, Content string }
		}
		require.NoError(t, json.Unmarshal([]byte(s.receive(t, asked)), &body))
		p.until(`!document.querySelector("#send").hidden`)
		if body.Messages[0].Role != "system" {
			return ""
		}
		return body.Messages[0].Content
	}
	p.click("#open-settings")
	p.click("#set-own-system")
	p.write("You are a pirate.")
	p.click("#keep-preset")
	p.until(`document.querySelector("#preset").value === "You are a pirate."`)
	p.click("#set-system")
	p.write("You are brief.")
	p.both("own-system")
	p.press("Escape")
	p.ask("one")
	require.Equal(t, "You are a pirate.", system())
	p.click("#new-chat")
	p.until(`!document.querySelector("#empty").hidden`) // what is typed before that is the other one's
	p.ask("two")
	require.Equal(t, "You are brief.", system())
	p.reload()
	p.says("#history", "one")
	p.click("#open-settings")
	p.eval(`document.querySelector("#preset").value = "You are a pirate."; document.querySelector("#preset").dispatchEvent(new Event("change"))`, nil)
	p.press("Escape")
	p.until(`document.querySelector("#model").value === "mini-one"`)
	p.ask("three")
	require.Equal(t, "You are a pirate.", system(), "a preset is kept over a reload")
	p.eval(`[...document.querySelectorAll("#history a")].find((a) => a.textContent === "one").click()`, nil)
	p.until(`document.querySelectorAll(".message").length === 2`)
	p.ask("four")
	require.Equal(t, "You are a pirate.", system())
	p.quiet(s.addr)
}

// TestPageGoesWhereItIsSent: another conversation that is chosen while an answer ends is the one that is shown.
func TestPageGoesWhereItIsSent(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	s.answers("Yes.")
	p.ask("one")
	p.says(last, "Yes.")
	p.until(`location.hash.startsWith("#/c/") && !document.querySelector(".busy")`)
	var one string
	p.eval(`location.hash`, &one)
	p.click("#new-chat")
	asked := s.answers("Yes.")
	// The list of conversations is read once more when an answer has ended: somebody clicks just then.
	p.eval(`window.reads = 0; const all = IDBObjectStore.prototype.getAll; IDBObjectStore.prototype.getAll = function () {
		if (document.querySelector(".from-assistant .cost")?.innerText.includes("35 tokens/s") && !window.clicked) {
			window.clicked = true; location.hash = `+quoted(one)+`; }
		return all.call(this); }; 0`, nil)
	p.until(`!document.querySelector("#empty").hidden`)
	p.ask("two")
	s.receive(t, asked)
	p.until(`window.clicked && document.querySelector(".from-user")?.innerText.includes("one")`)
	p.until(`!document.querySelector(".busy")`)
	p.eval(`new Promise((done) => setTimeout(done, 300))`, nil)
	var at string
	p.eval(`location.hash`, &at)
	require.Equal(t, one, at)
}

// TestPageEditsAnswers: an answer in other words is another version, and the conversation goes on from it; how full the
// context is is shown.
func TestPageEditsAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	asked := s.answers(" And so on.")
	p.says("#model", "mini-one")
	require.Empty(t, p.text("#fill"))
	p.ask("one")
	s.receive(t, asked)
	p.says("#fill", "Context: 62 of ")
	p.says("#fill", " tokens (")
	p.until(`!document.querySelector(".busy")`)
	p.click(last + " [data-act=edit]")
	p.until(`document.activeElement?.getAttribute("aria-label") === "Edited message"`)
	p.eval(`document.activeElement.select()`, nil)
	p.write("In my words.")
	p.both("edit-answer")
	p.click(last + " .editor button[type=submit]")
	p.says(last, "In my words.")
	p.says(last, "Edited by you.")
	p.says(last+" .versions", "2 of 2")
	p.click(last + " [data-act=more]")
	require.Contains(t, s.receive(t, asked), `"content":"In my words."`)
	p.says(last, "In my words. And so on.")
	p.until(`!document.querySelector(".busy")`)
	p.click(last + " .versions button:first-child")
	p.until(`!document.querySelector("` + last + `").innerText.includes("In my words.")`)
	p.reload()
	p.says(last+" .versions", " of 2")
	p.says("#fill", "Context: 62 of ")
	p.call("Emulation.setDeviceMetricsOverride", object{"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true}, nil)
	p.both("context-phone")
	p.quiet(s.addr)
}
