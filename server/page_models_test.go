package server

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// stock plays a server's models and what is done to them.
type stock struct {
	mu     sync.Mutex
	phases map[string]string
	names  []string
	told   chan string
	more   chan string // lines of a pull
}

func (k *stock) list(w http.ResponseWriter, _ *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	text := ""
	for _, name := range k.names {
		text += "," + listed(name, k.phases[name], "completion")
	}
	fmt.Fprintf(w, `{"data":[%s]}`, text[1:])
}

// does answers what changes a model's phase; an empty one: it is gone.
func (k *stock) does(phase string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.phases[k.names[1]] = phase
		if phase == "" {
			k.names = k.names[:1]
		}
		k.told <- r.Method + " " + r.URL.Path + " " + string(body)
		io.WriteString(w, `{"success":true}`)
	}
}

func (k *stock) pull(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	k.told <- string(body)
	for line := range k.more {
		io.WriteString(w, line+"\n")
		w.(http.Flusher).Flush()
	}
}

// TestPageManagesModels: models are loaded, unloaded, deleted and pulled from the page, by the public API; what the
// server does not allow is said in its own words.
func TestPageManagesModels(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	s, p := atDesk(t)
	p.until(`document.querySelector("#open-models").offsetParent === null`) // models are not to be changed here
	p.eval(`document.querySelector("#open-models").hidden = false`, nil)
	p.click("#open-models")
	p.says("#models .stock", "mini-two")
	p.says("#models .stock", "loaded · 16.6 MB")
	p.click("#pull-name")
	p.write("hf.co/a/b")
	p.press("Enter")
	p.says("#models .problem", "start the server with --allow-store") // the server's own words
	p.both("models-closed")

	k := &stock{phases: map[string]string{"one": "loaded", "two": "unloaded"}, names: []string{"one", "two"},
		told: make(chan string, 4), more: make(chan string)}
	for path, handle := range map[string]http.HandlerFunc{"/v1/models": k.list, "/models/load": k.does("loaded"),
		"/models/unload": k.does("unloaded"), "/api/delete": k.does(""), "/api/pull": k.pull} {
		s.serves(path, handle)
	}
	p.press("Escape")
	p.until(`!document.querySelector("#models").open && document.querySelector("#model").value === "one"`) // the list is the new one
	p.click("#open-models")
	p.until(`document.querySelector("#models").open`)
	p.says("#models .stock li:last-child", "unloaded")
	require.Zero(t, p.count("#models .problem:not([hidden])"))
	p.click(`[aria-label="Load two"]`)
	require.Equal(t, `POST /models/load {"model":"two"}`, s.receive(t, k.told))
	p.click(`[aria-label="Unload two"]`)
	require.Equal(t, `POST /models/unload {"model":"two"}`, s.receive(t, k.told))
	p.until(`document.querySelector('[aria-label="Load two"]:not(:disabled)')`)
	p.click(`[aria-label="Delete two"]`)
	p.says("#models .stock", "Delete its file?")
	p.both("models")
	p.click(`[aria-label="Delete its file? two"]`)
	require.Equal(t, `DELETE /api/delete {"model":"two"}`, s.receive(t, k.told))
	p.until(`document.querySelectorAll("#models .stock li").length === 1`)

	p.eval(`document.querySelector("#pull-name").value = ""`, nil)
	p.click("#pull-name")
	p.write("hf.co/a/b")
	p.press("Enter")
	require.Equal(t, `{"model":"hf.co/a/b"}`, s.receive(t, k.told))
	k.more <- `{"status":"pulling abc","total":2000000,"completed":500000}`
	p.says("#models form", "pulling abc: 500 kB of 2.0 MB")
	p.until(`document.querySelector("#models progress").value === 0.25`)
	p.call("Emulation.setDeviceMetricsOverride", object{"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true}, nil)
	p.both("models-phone")
	k.more <- `{"error":"the disk is full"}`
	p.says("#models .problem", "the disk is full")
	close(k.more)
	p.until(`!document.querySelector("#models form button").disabled && document.querySelector("#models progress").hidden`)
	p.click("#models form button")
	s.receive(t, k.told)
	p.says("#models .problem", "The download broke off")
	k.mu.Lock()
	k.names = append(k.names, "three")
	k.mu.Unlock()
	p.says("#models .stock", "three")
	p.press("Escape")
	p.says("#model", "three")
}
