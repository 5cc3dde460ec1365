package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// playsByName has a test write the answers: the pieces of one come from the channel whose name the last message
// contains, and it ends where that is closed.
func (s *stage) playsByName(from map[string]chan string) {
	s.plays(func(w *pieces, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked := string(body)[strings.LastIndex(string(body), `"role"`):] // the last message
		for name, more := range from {
			if !strings.Contains(asked, name) {
				continue
			}
			for goes := true; goes; {
				select {
				case text, open := <-more:
					if goes = open; open {
						w.content(text)
					}
				case <-r.Context().Done():
					return
				}
			}
			w.end("stop")
		}
	})
}

// TestPageInTwoTabs: what two tabs write in one conversation at once is all there in the end, in both.
func TestPageInTwoTabs(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	one, two := make(chan string, 4), make(chan string, 4)
	s.playsByName(map[string]chan string{"question one": one, "question two": two})
	p.ask("question one")
	one <- "The first "
	p.says(last, "The first")
	var address string
	p.until(`location.hash.startsWith("#/c/")`)
	p.eval(`location.href`, &address)
	q := p.openIn(p.context, address, 1280, 800, false)
	q.says(last, "The first")
	q.says(last, "Not finished")
	q.until(`!document.querySelector("#send").disabled && document.querySelector("#model").value === "mini-one"`)
	q.ask("question two")
	two <- "The second "
	q.says(last, "The second")
	one <- "is done."
	close(one)
	p.says(".from-assistant .cost", "tokens/s")     // of the first: the second may be shown here before it is done
	q.says(".from-assistant", "The first is done.") // while its own answer comes
	two <- "is done, too."
	close(two)
	q.says(last+" .cost", "tokens/s")
	for _, at := range []*tab{p, q} {
		at.says(".from-assistant", "The first is done.")
		at.says(last, "The second is done, too.")
		at.reload()
		at.says(".from-assistant", "The first is done.")
		at.says(last, "The second is done, too.")
	}
	p.click("#history .entry .icon-button:last-child")
	q.says("#history", "Nothing yet.")
	q.says("#empty", "What shall we talk about?")
	p.click("#toast .link")
	q.says("#history", "question one")
}

// TestPageWhileItAnswers: what a person does meanwhile is not undone when the answer ends.
func TestPageWhileItAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	one, two := make(chan string, 4), make(chan string, 4)
	s.playsByName(map[string]chan string{"question one": one, "question two": two})
	p.ask("question one")
	one <- "The first "
	p.says(last, "The first")
	p.click(".from-user [data-act=edit]")
	p.press("Enter") // it is not lost that it cannot be asked now
	p.write(", or another")
	one <- "is done."
	close(one)
	p.says(last+" .cost", "tokens/s")
	p.until(`document.activeElement.value === "question one, or another"`)
	p.press("Escape")
	p.says(".from-user", "question one")

	p.ask("question two")
	two <- "The second "
	p.says(last, "The second")
	p.click("#history .entry .icon-button:last-child")
	p.says("#history", "Nothing yet.")
	p.until(`!document.querySelector("#send").hidden && !document.querySelector("#send").disabled`) // it was stopped
	close(two)
	p.reload()
	p.says("#history", "Nothing yet.")
}

// TestPageAnswersSeveral: while one conversation is answered others can be asked, and the list shows which are.
func TestPageAnswersSeveral(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	one, two := make(chan string, 4), make(chan string, 4)
	s.playsByName(map[string]chan string{"question one": one, "question two": two})
	p.ask("question one")
	p.says("#history", "question one") // before a word has come
	one <- "The first "
	p.says(last, "The first")
	p.click("#new-chat")
	p.ask("question two")
	two <- "The second "
	p.says(last, "The second")
	p.until(`document.querySelectorAll("#history .pulse").length === 2`)
	p.shot("several")
	two <- "is done."
	close(two)
	p.says(last+" .cost", "tokens/s")
	p.until(`document.querySelectorAll("#history .pulse").length === 1 && !document.querySelector("#send").hidden`)
	p.click("#history .entry:last-child a")
	p.says(last, "The first")
	p.until(`document.querySelector("#send").hidden`)
	one <- "is done."
	close(one)
	p.says(last, "The first is done.")
	p.says(last+" .cost", "tokens/s")
	p.until(`!document.querySelector("#history .pulse")`)
}

// TestPageReads: how far a prompt is read is shown until the first word, and math is set.
func TestPageReads(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	more := make(chan string)
	asked := make(chan string, 1)
	s.plays(func(w *pieces, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		w.event(`{"choices":[],"prompt_progress":{"total":20000,"cache":0,"processed":4096,"time_ms":2000}}`)
		w.content(<-more)
		w.end("stop")
	})
	p.ask("A long text")
	p.says(last, "Reading: 20 % of 20000 tokens")
	require.Contains(t, s.receive(t, asked), `"return_progress":true`)
	p.shot("reading")
	more <- "So \\(a_1 \\cdot b_1 = c\\) and \\[\\sum_{i} \\{x_i\\}\\] and $$\\frac{a}{b} \\\\ c$$, `\\(code\\)` and \\*none\\*.\n\n" +
		"\\[\n\\int x\\,dx\n\\]"
	p.says(last, `(code\) and *none*.`)
	p.until(`document.querySelectorAll(".from-assistant math").length === 4`)
	var tex []string
	p.eval(`[...document.querySelectorAll(".from-assistant annotation")].map((a) => a.textContent.trim())`, &tex)
	require.Equal(t, []string{`a_1 \cdot b_1 = c`, `\sum_{i} \{x_i\}`, `\frac{a}{b} \\ c`, `\int x\,dx`}, tex)
	p.both("math")
	p.until(`!document.querySelector(".from-assistant").innerText.includes("Reading")`)
}
