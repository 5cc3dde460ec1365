package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
)

// paintingPage opens the view of pictures on a screen, with a painter behind it.
func paintingPage(t *testing.T, e *easel, width int, phone bool) (*stage, *tab) {
	t.Helper()
	b := startBrowser(t)
	one := startEngine(t, func(c *actors.Config) { c.Name = "mini-one" })
	o := Options{Painter: e}
	s := stageOf(t, startServer(t, one, o, func(o Options) *Server { return New(Engines(one), o) }))
	p := b.open(s.url+"/", width, 800, phone)
	p.until(`!document.querySelector("#to-pictures").hidden`)
	p.click("#to-pictures")
	p.says("#pictures", "Nothing yet. Pictures stay in this browser.")
	return s, p
}

// redIs is a condition: a canvas has some width, and this red at a corner.
func redIs(selector string, width, red int) string {
	return fmt.Sprintf(`(() => { const c = document.querySelector(%q); if (c?.width !== %d) return false;
		const copy = new OffscreenCanvas(2, 2).getContext("2d"); copy.drawImage(c, 0, 0);
		return copy.getImageData(1, 1, 1, 1).data[0] === %d; })()`, selector, width, red)
}

// TestPageMakesPictures: a person asks for a picture, sees how far it is and what it may become, stops one, gets one
// again with the same seed or another, finds all of them again, and takes a removal back.
func TestPageMakesPictures(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	e := newEasel("painter", "slower")
	e.goes = make(chan struct{})
	s, p := paintingPage(t, e, 1280, false)
	p.sound("nothing made yet")
	p.click("#picture-prompt")
	p.write("a cat on a warm wall")
	p.eval(`{ const set = (id, v) => { document.querySelector(id).value = v; }; set("#picture-steps", "4"); set("#picture-seed", "7");
		set("#picture-size", "512x512"); }`, nil)
	p.click("#pictures form .first")
	o := <-e.orders
	require.Equal(t, "a cat on a warm wall", o.Prompt)
	require.Equal(t, [4]int{4, 7, 512, 512}, [4]int{o.Steps, int(o.Seed), o.Width, o.Height})
	e.goes <- struct{}{}
	p.until(redIs(".now canvas", 512, 100))
	e.goes <- struct{}{}
	p.until(redIs(".now canvas", 512, 101))
	p.says(".now", "Step 3 of 4")
	p.until(`document.querySelector(".now progress").value === 0.5`)
	p.sound("making one")
	p.both("pictures-making")
	e.goes <- struct{}{}
	e.goes <- struct{}{}
	p.until(redIs(".made canvas", 512, 7))
	p.says(".made", "512 × 512 · 4 steps · seed 7 · painter")
	p.until(`document.querySelector(".now").hidden`)

	p.click(".made [aria-label^=Again]")
	o = <-e.orders
	require.Equal(t, 4, o.Steps)
	require.NotEqual(t, uint64(7), o.Seed, "another seed")
	p.until(`document.activeElement.textContent === "Stop"`)
	p.press("Escape")
	require.ErrorContains(t, <-e.left, "the client has gone")
	p.until(`document.querySelector(".now").hidden && document.querySelectorAll(".made").length === 1`)

	p.click(".made [aria-label^=Take]")
	p.until(`document.activeElement.id === "picture-prompt" && document.querySelector("#picture-seed").value === "7"`)
	close(e.goes)
	p.eval(`document.querySelector("#picture-model").value = "slower"; document.querySelector("#picture-steps").value = ""`, nil)
	p.click("#pictures form .first")
	o = <-e.orders
	require.Equal(t, [2]int{28, 7}, [2]int{o.Steps, int(o.Seed)}, "the steps that the model is used to")
	p.until(`document.querySelectorAll(".made").length === 2`)
	p.says(".made:first-child", "seed 7 · slower")
	p.reload()
	p.until(`document.querySelectorAll(".made").length === 2`)
	p.until(redIs(".made canvas", 512, 7))
	p.sound("made ones")
	p.both("pictures-made")
	p.click(".made:first-child [aria-label^=Delete]")
	p.until(`document.querySelectorAll(".made").length === 1`)
	p.click("#toast .link")
	p.until(`document.querySelectorAll(".made").length === 2`)

	p.click("#to-chat")
	p.says("#model", "mini-one")
	require.NotContains(t, p.text("#model"), "painter", "it writes no text")
	p.quiet(s.addr)
}

// TestPagePicturesFail: what goes wrong is said, and the form stays.
func TestPagePicturesFail(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	_, p := paintingPage(t, newEasel("painter"), 390, true)
	p.click("#picture-prompt")
	p.write("a cat")
	p.eval(`document.querySelector("#picture-size").append(new Option("odd", "500x500", true, true))`, nil)
	p.click("#pictures form .first")
	p.says(".now .problem", "size is 500 × 500 pixels: want multiples of 16")
	p.until(`!document.querySelector("#pictures form .first").hidden && document.querySelector("#picture-prompt").value === "a cat"`)
	p.sound("a refusal")
	p.both("pictures-phone")
}

// TestPageWithoutPictures: where nothing makes pictures, nothing offers it.
func TestPageWithoutPictures(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	_, p := atDesk(t)
	p.until(`document.querySelector("#to-pictures").hidden`)
}
