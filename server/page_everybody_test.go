package server

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sound requires that axe-core, which knows the rules of WCAG 2.2 (A and AA), finds nothing: contrast, names, roles,
// order.
func (p *tab) sound(what string) {
	p.t.Helper()
	source, err := os.ReadFile("testdata/axe.min.js")
	require.NoError(p.t, err)
	p.eval(`typeof axe === "object"`, &p.axe)
	if !p.axe {
		p.eval(string(source)+"; 0", nil)
	}
	var found []string
	p.eval(`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then((r) =>
		r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target + ": " + n.failureSummary)))`, &found)
	require.Empty(p.t, found, what)
}

// dark sets what the system prefers.
func (p *tab) dark(dark bool) {
	p.t.Helper()
	scheme := map[bool]string{false: "light", true: "dark"}[dark]
	p.call("Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme},
		{"name": "prefers-reduced-motion", "value": "reduce"}}}, nil)
}

// TestPageIsForEverybody: contrast and labels in every view, light and dark, on a desk and on a phone; and the keyboard
// reaches all of it.
func TestPageIsForEverybody(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	b := startBrowser(t)
	s := startPage(t, Options{})
	s.plays(func(w *pieces, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "fail") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.event(`{"choices":[{"index":0,"delta":{"reasoning_content":"The user wants *code*."}}]}`)
		w.content(rich)
		w.event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"run","arguments":"{}"}}]}}]}`)
		w.end("tool_calls")
	})
	for _, width := range []int{1280, 390} {
		name := map[int]string{1280: "desk", 390: "phone"}[width]
		p := b.open(s.url+"/", width, 844, false)
		p.says("#model", "mini-one")
		for _, text := range []string{"How do I reverse a string in Go?", "And then?", "please fail"} {
			p.ask(text)
			p.until(`!document.querySelector("#send").hidden && !document.querySelector("#prompt").value`)
		}
		p.says(last, "The answer failed")
		p.click(".thought summary")
		p.both(name + "-long")
		p.eval(`document.querySelector("#scroll").scrollTop = 0`, nil)
		p.until(`!document.querySelector("#to-end").hidden`)
		p.both(name + "-top")
		p.click("#open-settings")
		p.both(name + "-settings")
		p.press("Escape")
		if width == 390 {
			p.click("#open-sidebar")
			p.until(`document.activeElement.id === "close-sidebar"`)
			p.both(name + "-sidebar")
			p.press("Escape")
			p.until(`document.activeElement.id === "open-sidebar"`)
		}
		p.click("#to-engine")
		p.until(`document.querySelectorAll("#engine tbody tr").length > 5`)
		p.both(name + "-engine")
		p.eval(`location.hash = "#/"`, nil)
		p.says("#empty h2", "What shall we")
		p.until(`document.querySelector("#to-end").hidden`) // there is nothing newer
		p.both(name + "-empty")
	}
}

// both looks at a view in both colours.
func (p *tab) both(name string) {
	p.t.Helper()
	for _, dark := range []bool{true, false} {
		p.dark(dark)
		p.sound(fmt.Sprintf("%s, dark: %v", name, dark))
		p.shot(name + map[bool]string{true: "-dark"}[dark])
	}
}

// TestPageByKeyboard reaches what the mouse does with Tab alone, and sees where it is.
func TestPageByKeyboard(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	_, p := atDesk(t)
	p.until(`document.activeElement.id === "prompt"`)
	p.write("12 + 30")
	p.press("Enter")
	p.says(last, "12 + 30 = 42.")
	p.until(`!document.querySelector(".busy")`)
	p.eval(`document.activeElement.blur()`, nil)
	reached := map[string]bool{}
	for range 30 {
		p.press("Tab")
		var at struct {
			Name string
			Ring bool
		}
		p.eval(`(() => { const e = document.activeElement, s = getComputedStyle(e), box = e.closest(".composer-box");
			if (e === document.body) return {name: "", ring: false};
			return {name: e.id || e.getAttribute("aria-label") || e.innerText,
				ring: s.outlineStyle !== "none" || (box && getComputedStyle(box).boxShadow !== "none")}; })()`, &at)
		require.True(t, at.Ring || at.Name == "", "who uses the keyboard does not see where it is: %s", at.Name)
		reached[at.Name] = true
	}
	for _, want := range []string{"new-chat", "12 + 30", "Rename “12 + 30”", "Delete “12 + 30”", "model", "to-chat", "to-engine",
		"open-settings", "scroll", "Copy the message", "Edit the message", "Another answer", "prompt", "send"} {
		require.True(t, reached[want], "%s is out of reach: %v", want, reached)
	}
	p.eval(`document.querySelector("#open-settings").focus()`, nil)
	p.press("/")
	p.until(`document.activeElement.id === "prompt"`)
}
