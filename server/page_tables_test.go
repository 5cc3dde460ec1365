package server

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// tabled is a table of short columns beside a long one, as models write them.
const tabled = "| Name | Age | Occupation | City | What is said |\n" +
	"|---|--:|---|---|---|\n" +
	"| Anna | 31 | Mathematician | Stockholm | She answers before the question has ended, and is right more often than not |\n" +
	"| Bartholomew | 105 | Retired | Reykjavik | Nobody remembers anything of it |\n"

// TestPageTables: no word and no number of a table is broken, on a desk and on a phone, where the table alone scrolls.
func TestPageTables(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	b := startBrowser(t)
	s := startPage(t, Options{})
	s.plays(func(w *pieces, _ *http.Request) {
		w.content(tabled)
		w.end("stop")
	})
	for _, width := range []int{1280, 390} {
		p := b.open(s.url+"/", width, 844, false)
		p.says("#model", "mini-one")
		p.ask("A table, please.")
		p.says(last, "Bartholomew")
		p.until(`!document.querySelector(".busy")`)
		var broken []string
		p.eval(`[...document.querySelectorAll("`+last+` .table :is(th, td)")].flatMap((cell) => {
			const text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
			while (text.nextNode()) for (const word of text.currentNode.data.matchAll(/[^\s/.:,]+/g)) {
				const range = document.createRange();
				range.setStart(text.currentNode, word.index);
				range.setEnd(text.currentNode, word.index + word[0].length);
				if (range.getClientRects().length > 1) broken.push(word[0]);
			}
			return broken;
		})`, &broken)
		require.Empty(t, broken, "%d", width)
		require.True(t, p.holds(`document.documentElement.scrollWidth <= innerWidth && document.querySelector("#scroll").scrollWidth <= innerWidth`))
		require.Equal(t, width == 390, p.holds(`(() => { const t = document.querySelector("`+last+` .table"); return t.scrollWidth > t.clientWidth; })()`),
			"%d: the table scrolls where it has no room", width)
		p.quiet(s.addr)
	}
}
