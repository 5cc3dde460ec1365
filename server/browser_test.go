package server

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

// browser is a headless Chromium that is told what to do over a pipe, in the DevTools protocol: JSON messages, each
// ended by a 0. It needs no driver and no network.
type browser struct {
	t   *testing.T
	cmd *exec.Cmd
	in  *os.File

	mu      sync.Mutex
	id      int
	waiting map[int]chan message
	tabs    map[string]*tab // by session
}

type message struct {
	ID        int             `json:"id"`
	Method    string          `json:"method"`
	SessionID string          `json:"sessionId"`
	Params    json.RawMessage `json:"params"`
	Result    json.RawMessage `json:"result"`
	Error     *struct{ Message string }
}

// tab is one page in it, with what happened there.
type tab struct {
	*browser
	session string
	context string   // what the browser keeps for it
	asked   []string // addresses of requests
	faults  []string // exceptions, and what the console or the policy had to say
	axe     bool     // axe-core is in it
}

// startBrowser starts Chromium. Where there is none, the test is missing it.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	name := os.Getenv("SLUICE_CHROMIUM")
	if name == "" {
		name = testref.Tool(t, "Chromium, or name it in SLUICE_CHROMIUM", "chromium", "chromium-browser", "google-chrome")
	}
	args := []string{"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + t.TempDir(), "--disable-gpu",
		"--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-default-apps", "--disable-extensions", "--force-color-profile=srgb", "--hide-scrollbars", "--disable-dev-shm-usage"}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // it refuses to run as root with one
	}
	theirs, in, err := os.Pipe()
	require.NoError(t, err)
	out, answers, err := os.Pipe()
	require.NoError(t, err)
	b := &browser{t: t, cmd: exec.Command(name, args...), in: in, waiting: map[int]chan message{}, tabs: map[string]*tab{}}
	b.cmd.ExtraFiles = []*os.File{theirs, answers} // its descriptors 3 and 4
	require.NoError(t, b.cmd.Start())
	theirs.Close()
	answers.Close()
	read := make(chan struct{})
	go func() { b.read(out); close(read) }()
	t.Cleanup(func() {
		b.send("", "Browser.close", map[string]any{})
		slow := time.AfterFunc(patient, func() { b.cmd.Process.Kill() })
		b.cmd.Wait() // how it ends is its own business
		slow.Stop()
		in.Close()
		<-read
		out.Close()
	})
	return b
}

// read takes messages until the browser has gone.
func (b *browser) read(from *os.File) {
	r := bufio.NewReader(from)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if m.ID != 0 {
			if answer := b.waiting[m.ID]; answer != nil {
				answer <- m
			}
			delete(b.waiting, m.ID)
		} else if at := b.tabs[m.SessionID]; at != nil {
			at.happened(&m)
		}
		b.mu.Unlock()
	}
}

// happened notes an event.
func (p *tab) happened(m *message) {
	var e struct {
		Request          struct{ URL string }
		Entry            struct{ Level, Text, URL string }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if json.Unmarshal(m.Params, &e) != nil {
		return
	}
	switch m.Method {
	case "Network.requestWillBeSent":
		p.asked = append(p.asked, e.Request.URL)
	case "Runtime.exceptionThrown":
		p.faults = append(p.faults, e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
	case "Log.entryAdded":
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			p.faults = append(p.faults, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// send asks for something; the answer comes to the channel.
func (b *browser) send(session, method string, params any) chan message {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.id++
	ask := map[string]any{"id": b.id, "method": method, "params": params}
	if session != "" {
		ask["sessionId"] = session
	}
	answer := make(chan message, 1)
	b.waiting[b.id] = answer
	text, _ := json.Marshal(ask)
	b.in.Write(append(text, 0))
	return answer
}

// call waits for the answer.
func (b *browser) call(session, method string, params, result any) {
	b.t.Helper()
	select {
	case m := <-b.send(session, method, params):
		require.Nil(b.t, m.Error, "%s", method)
		if result != nil {
			require.NoError(b.t, json.Unmarshal(m.Result, result))
		}
	case <-time.After(patient):
		b.t.Fatalf("%s: the browser does not answer", method)
	}
}

// object spells parameters.
type object = map[string]any

// open opens an address in a browser context of its own: nothing is kept from other tabs.
func (b *browser) open(url string, width, height int, dark bool) *tab {
	b.t.Helper()
	var context struct{ BrowserContextID string }
	b.call("", "Target.createBrowserContext", object{}, &context)
	return b.openIn(context.BrowserContextID, url, width, height, dark)
}

// openIn opens an address beside the other tabs of a context.
func (b *browser) openIn(context, url string, width, height int, dark bool) *tab {
	b.t.Helper()
	var target struct{ TargetID string }
	var attached struct{ SessionID string }
	b.call("", "Target.createTarget", object{"url": "about:blank", "browserContextId": context}, &target)
	b.call("", "Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}, &attached)
	p := &tab{browser: b, session: attached.SessionID, context: context}
	b.mu.Lock()
	b.tabs[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		p.call(domain+".enable", object{}, nil)
	}
	p.call("Emulation.setDeviceMetricsOverride", object{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	scheme := map[bool]string{false: "light", true: "dark"}[dark]
	p.call("Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	p.call("Emulation.setFocusEmulationEnabled", object{"enabled": true}, nil)
	p.call("Page.navigate", object{"url": url}, nil)
	p.until(`document.readyState === "complete"`)
	return p
}

func (p *tab) call(method string, params, result any) {
	p.t.Helper()
	p.browser.call(p.session, method, params, result)
}

// eval evaluates an expression, and waits for it if it is a promise.
func (p *tab) eval(expression string, into any) {
	p.t.Helper()
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	p.call("Runtime.evaluate", object{"expression": expression, "awaitPromise": true, "returnByValue": true}, &out)
	require.Nil(p.t, out.ExceptionDetails, "%s: %+v", expression, out.ExceptionDetails)
	if into != nil {
		require.NoError(p.t, json.Unmarshal(out.Result.Value, into), "%s: %s", expression, out.Result.Value)
	}
}

// reload opens the page anew.
func (p *tab) reload() {
	p.t.Helper()
	p.eval(`window.beforeReload = true`, nil)
	p.call("Page.reload", object{}, nil)
	p.until(`!window.beforeReload && document.readyState === "complete"`)
}

// holds says whether an expression is true; where the page is being left, it is not.
func (p *tab) holds(expression string) bool {
	p.t.Helper()
	select {
	case m := <-p.send(p.session, "Runtime.evaluate", object{"expression": "Boolean(" + expression + ")", "returnByValue": true}):
		return m.Error == nil && strings.Contains(string(m.Result), `"value":true`)
	case <-time.After(patient):
		p.t.Fatalf("%s: the browser does not answer", expression)
		return false
	}
}

// until waits for an expression to become true.
func (p *tab) until(expression string) {
	p.t.Helper()
	for deadline := time.Now().Add(patient); ; time.Sleep(20 * time.Millisecond) {
		if p.holds(expression) {
			return
		}
		if time.Now().After(deadline) {
			p.shot("failed")
			p.t.Fatalf("it never became so: %s\n%s\n%s", expression, p.text("body"), strings.Join(p.faults, "\n"))
		}
	}
}

func quoted(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// says waits until an element's text contains another.
func (p *tab) says(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%s)?.innerText.includes(%s)`, quoted(selector), quoted(text)))
}

// text is an element's, as it is shown.
func (p *tab) text(selector string) (s string) {
	p.t.Helper()
	p.eval(fmt.Sprintf(`document.querySelector(%s)?.innerText ?? ""`, quoted(selector)), &s)
	return s
}

// count is how many elements there are.
func (p *tab) count(selector string) (n int) {
	p.t.Helper()
	p.eval(fmt.Sprintf(`document.querySelectorAll(%s).length`, quoted(selector)), &n)
	return n
}

// click presses the mouse where an element is, as soon as nothing lies over it, and fails if something stays there.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%s)`, quoted(selector)))
	var at struct {
		X, Y float64
		Hit  bool
	}
	require.Eventually(p.t, func() bool {
		p.eval(fmt.Sprintf(`(() => { const e = document.querySelector(%s); e.scrollIntoView({block: "nearest"});
			const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2, hit = document.elementFromPoint(x, y);
			return {x, y, hit: e === hit || e.contains(hit) || Boolean(hit?.contains(e))}; })()`, quoted(selector)), &at)
		return at.Hit
	}, patient, 20*time.Millisecond, "%s is covered by something else, or outside", selector)
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		p.call("Input.dispatchMouseEvent", object{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// write types text where the focus is.
func (p *tab) write(text string) {
	p.t.Helper()
	p.call("Input.insertText", object{"text": text}, nil)
}

// press presses a key that has no text of its own, or Enter.
func (p *tab) press(key string) {
	p.t.Helper()
	codes := map[string]int{"Enter": 13, "Escape": 27, "Tab": 9, "ArrowUp": 38, "/": 191}
	down := object{"type": "keyDown", "key": key, "windowsVirtualKeyCode": codes[key]}
	if key == "Enter" {
		down["text"] = "\r"
	}
	p.call("Input.dispatchKeyEvent", down, nil)
	p.call("Input.dispatchKeyEvent", object{"type": "keyUp", "key": key, "windowsVirtualKeyCode": codes[key]}, nil)
}

// shot saves a picture of the page into the folder that SLUICE_SCREENSHOTS names, if it names one.
func (p *tab) shot(name string) {
	p.t.Helper()
	dir := os.Getenv("SLUICE_SCREENSHOTS")
	if dir == "" {
		return
	}
	var picture struct{ Data string }
	p.call("Page.captureScreenshot", object{"format": "png"}, &picture)
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	require.NoError(p.t, err)
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644))
}

// quiet requires that nothing went wrong in the page, and that it asked nobody but the server at addr.
func (p *tab) quiet(addr string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(p.t, p.faults)
	for _, url := range p.asked {
		require.True(p.t, strings.HasPrefix(url, "http://"+addr+"/") || url == "about:blank", "a request left the machine: %s", url)
	}
	require.NotEmpty(p.t, p.asked)
}
