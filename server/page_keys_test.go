package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPageKeys: ? shows the keys, unless somebody writes it; each of them does what the list says.
func TestPageKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	key := func(options string) {
		t.Helper()
		p.eval(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {bubbles: true, cancelable: true, `+options+`}))`, nil)
	}
	p.click("#prompt")
	key(`key: "?"`)
	require.Zero(t, p.count("dialog[open]"), "it is written")
	p.eval(`document.activeElement.blur()`, nil)
	key(`key: "?"`)
	p.says("#keys", "Show this list")
	p.both("keys")
	key(`key: "k", ctrlKey: true`)
	require.Equal(t, 1, p.count("dialog[open]"))
	p.press("Escape")
	p.until(`!document.querySelector("dialog[open]")`)
	p.click("#open-keys")
	p.until(`document.querySelector("#keys").open`)
	p.call("Emulation.setDeviceMetricsOverride", object{"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true}, nil)
	p.both("keys-phone")
	p.call("Emulation.setDeviceMetricsOverride", object{"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": false}, nil)
	p.click(`[aria-label="Close the list of keys"]`)
	p.until(`!document.querySelector("dialog[open]")`)

	key(`key: "k", ctrlKey: true`)
	p.until(`document.activeElement.id === "search"`)
	p.eval(`document.activeElement.blur()`, nil)
	key(`key: "/"`)
	p.until(`document.activeElement.id === "prompt"`)
	p.ask("12 + 30")
	p.says(last, "12 + 30 = 42.")
	p.until(`location.hash.startsWith("#/c/") && !document.querySelector(".busy")`)
	key(`key: "˜", code: "KeyN", altKey: true`) // as a Mac has it
	p.until(`!document.querySelector("#empty").hidden && !document.querySelector("#messages").children.length`)
	p.quiet(s.addr)
}
