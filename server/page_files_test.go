package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// drops lets a file fall onto the page.
func (p *tab) drops(name, bytes string) {
	p.t.Helper()
	p.eval(fmt.Sprintf(`(() => { const d = new DataTransfer(); d.items.add(new File([%s], %s));
		for (const kind of ["dragover", "drop"]) document.querySelector("#messages").dispatchEvent(new DragEvent(kind,
			{dataTransfer: d, bubbles: true, cancelable: true})); })()`, bytes, quoted(name)), nil)
}

// TestPageTakesFiles: text files go with a message, each a part with its name; what is no text, or too long, does not.
func TestPageTakesFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	asked := s.answers("Read.")
	content := func() any {
		t.Helper()
		var body struct{ Messages []struct{ Content any } }
		require.NoError(t, json.Unmarshal([]byte(s.receive(t, asked)), &body))
		p.until(`!document.querySelector("#send").hidden`)
		return body.Messages[len(body.Messages)-1].Content
	}
	part := func(text string) any { return object{"type": "text", "text": text} }
	p.drops("picture.png", `new Uint8Array([137, 80, 78, 71, 255])`)
	p.says("#toast", "picture.png is no text")
	p.drops("large.txt", `"x".repeat(1100000)`)
	p.says("#toast", "large.txt has 1.1 MB: files may have 1.0 MB")
	p.drops("Paper.PDF", `"%PDF-1.7"`)
	p.says("#toast", "Paper.PDF is a PDF, and PDFs are not read here")
	require.Zero(t, p.count("#attached li"))
	p.drops("notes.md", quoted("a ```code``` note\n"))
	p.gives("#attach-file", "list.csv", "a,b")
	p.until(`document.querySelectorAll("#attached li").length === 2`)
	p.gives("#attach-file", "gone.txt", "not this one")
	p.says("#attached", "gone.txt")
	p.click(`[aria-label="Leave out gone.txt"]`)
	p.both("attached")
	p.ask("What is in them?")
	require.Equal(t, []any{part("File notes.md:\n````\na ```code``` note\n````"), part("File list.csv:\n```\na,b\n```"),
		part("What is in them?")}, content())
	require.Zero(t, p.count("#attached li"))
	require.Equal(t, 2, p.count(".from-user details"))
	p.click(".from-user summary")
	p.says(".from-user", "a ```code``` note")
	p.both("files")
	p.click(".from-user [data-act=edit]")
	p.until(`document.activeElement?.getAttribute("aria-label") === "Edited message"`)
	p.press("Enter")
	require.Len(t, content(), 3, "they stay with a question that is edited")

	p.gives("#attach-file", "kept.txt", "for here")
	p.says("#attached", "kept.txt")
	p.click("#new-chat")
	p.until(`document.querySelector("#attached").hidden`)
	p.click("#history .entry a")
	p.says("#attached", "kept.txt")
	p.eval(`new Promise((done) => { const look = () => { const r = indexedDB.open("sluice-drafts"); r.onsuccess = () => {
		const q = r.result.transaction("files").objectStore("files").count();
		q.onsuccess = () => { r.result.close(); if (q.result) done(); else setTimeout(look, 20); }; }; }; look(); })`, nil)
	p.reload()
	p.says("#attached", "kept.txt")
	p.until(`document.querySelector("#model").value`)
	p.click("#send") // without a word
	require.Equal(t, []any{part("File kept.txt:\n```\nfor here\n```")}, content())
	s.plays(nil)
	p.click("#new-chat")
	p.until(`!document.querySelector("#empty").hidden`)
	p.gives("#attach-file", "sum.txt", "12 + 30")
	p.says("#attached", "sum.txt")
	p.ask("What is the sum?")
	p.says(last+" .cost", "tokens/s") // the server takes it as it is
	p.quiet(s.addr)
}

// TestPageSetsMath: formulas that are wrong, very long or very deep stay text, and none of them leads elsewhere.
func TestPageSetsMath(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	s.plays(func(w *pieces, _ *http.Request) {
		w.content(`Good: \(x^2\), bad: \(\frac{\), link: \(\href{https://example.org}{x}\), picture: \(\includegraphics{http://127.0.0.1:9/x.png}\), ` +
			`loop: \(\def\a{\a\a}\a\), deep: \(` + strings.Repeat(`\sqrt{`, 200) + "x" + strings.Repeat("}", 200) + `\), ` +
			`long: \(` + strings.Repeat("x+", 2500) + `1\), html: \(\htmlStyle{color: red}{y}\) ` + "\n\n\\[\nE = mc^2\n\\]\n\nThe end.")
		w.end("stop")
	})
	p.ask("Math, please.")
	p.says(last, "The end.")
	p.until(`!document.querySelector(".busy") && document.querySelector(".math.block math")`)
	said := p.text(last)
	for _, text := range []string{`\(\frac{\)`, `\(\def\a{\a\a}\a\)`, `\(\sqrt{\sqrt{`, `\(x+x+`} {
		require.Contains(t, said, text)
	}
	require.Zero(t, p.count(last+" :is(.math a, .math img, .math [href], .math [style*=red], mglyph)"))
	require.Equal(t, 2, p.count(last+" math:not(:has(mtext))"))
	p.both("formulas")
	p.quiet(s.addr)
}
