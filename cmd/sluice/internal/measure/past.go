package measure

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/storage/incidents"
	"github.com/sluice-ai/sluice/storage/sealed"
)

// past is a request in a trace.
type past struct {
	number   int // counted from 0, as they arrived
	model    tokentrace.Model
	at       time.Time // when it came; zero: the trace does not say
	recorded actors.Recorded
	again    actors.Request // for the tokens that it got, but for how many
	odd      error          // why it cannot be answered again; nil: it can
	drawn    []int32
	spent    []tokentrace.Spent   // since its last token
	waits    [][]tokentrace.Spent // by token: what the time before it went to
}

// history is what is read of a trace.
type history struct {
	models []tokentrace.Model
	all    []*past // within the window
	number int     // requests so far
	first  time.Time
	last   time.Time // when they came, as far as is known
	window window
	open   map[uint64]*past // of the model that is read
	opens  map[int]map[uint64]*past
	noted  []string // what could not be read, for the user
}

// pastFlags name a trace.
type pastFlags struct {
	Trace string `arg:"" placeholder:"FILE" help:"Token trace, as --record writes it, or a folder of incidents, or that of --state."`
}

// read reads the requests of a trace within a window.
func (f *pastFlags) read(e *env.Env, w window) (*history, error) {
	h := &history{window: w}
	keys, err := compute.StateKeys(e)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(f.Trace); err != nil || !info.IsDir() {
		in, err := e.OpenInput(f.Trace)
		if err != nil {
			return nil, err
		}
		h.begin()
		if err := errors.Join(h.file(in, keys), in.Close()); err != nil {
			return nil, env.OnFile(f.Trace, err)
		}
		return h, h.missing()
	}
	runs, err := incidents.Runs(f.Trace)
	if err != nil {
		return nil, env.OnFile(f.Trace, err)
	}
	for _, files := range runs {
		h.begin()
		for _, path := range files {
			in, err := os.Open(path)
			if err == nil {
				err = errors.Join(h.file(in, keys), in.Close())
			}
			if err != nil { // of what follows some is missing
				h.noted = append(h.noted, fmt.Sprintf("%s: %v", filepath.Base(path), err))
				h.begin()
			}
		}
	}
	return h, h.missing()
}

// begin forgets the requests that are open: what follows is not of them.
func (h *history) begin() { h.opens = map[int]map[uint64]*past{} }

// file reads a file of a run. One that was cut off is read as far as it goes.
func (h *history) file(in io.Reader, keys []*sealed.Key) error {
	plain, err := incidents.Reader(in, keys...)
	if err != nil {
		return err
	}
	r, err := tokentrace.NewReader(plain)
	if err != nil {
		return err
	}
	h.meet(&r.Model)
	for {
		event, err := r.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		h.meet(&r.Model)
		h.take(event, &r.Model)
	}
}

// meet notes a model, of which the next event is.
func (h *history) meet(m *tokentrace.Model) {
	if h.opens[m.Number] == nil {
		h.opens[m.Number] = map[uint64]*past{}
	}
	h.open = h.opens[m.Number]
	same := func(o tokentrace.Model) bool { return o.Name == m.Name && o.Vocab == m.Vocab }
	if !slices.ContainsFunc(h.models, same) {
		h.models = append(h.models, *m)
	}
}

func (h *history) take(event tokentrace.Event, m *tokentrace.Model) {
	switch x := event.(type) {
	case *tokentrace.Open:
		p := &past{number: h.number, model: *m}
		h.number++
		p.again, p.odd = p.recorded.Again(x.Settings, x.Prompt, 0)
		if m.Began > 0 {
			p.at = time.UnixMicro(m.Began + int64(x.Time))
			if h.last = p.at; h.first.IsZero() {
				h.first = p.at
			}
		}
		if h.window.has(p) {
			h.open[x.Sequence] = p
			h.all = append(h.all, p)
		}
	case *tokentrace.Waited:
		if p := h.open[x.Sequence]; p != nil {
			p.spent = append(p.spent, x.For...)
		}
	case *tokentrace.Drawn:
		if p := h.open[x.Sequence]; p != nil {
			p.drawn, p.waits, p.spent = append(p.drawn, x.Token), append(p.waits, p.spent), nil
		}
	case *tokentrace.End:
		delete(h.open, x.Sequence)
	}
}

// of returns the requests of the model that is called so: those of its name, or of the only one in the trace.
func (h *history) of(trace string, here *actors.Info) (all []*past, err error) {
	var names []string
	for _, m := range h.models {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	name := here.Name
	if len(names) == 1 {
		name = names[0]
	}
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("%s: it has requests of %s, and this model is %q: give one of these with -m", trace,
			strings.Join(names, ", "), here.Name)
	}
	for _, m := range h.models {
		if m.Name == name && m.Vocab != here.Vocab {
			return nil, fmt.Errorf("%s: it was recorded with %q, which has %d tokens; this model is %q and has %d: "+
				"give the one that was recorded with -m", trace, m.Name, m.Vocab, here.Name, here.Vocab)
		}
	}
	for _, p := range h.all {
		if p.model.Name == name {
			all = append(all, p)
		}
	}
	return all, nil
}

// window is which requests of a trace are wanted: those that came from one border to the other.
type window struct{ from, to *border }

// border is an end of a window. One of at and id is set, or else it is a number.
type border struct {
	flag   string
	number int
	at     time.Time
	id     string
	passed bool // a request of that id came
}

// windowOf reads the ends of a window; "" is none.
func windowOf(from, to string, now time.Time) window {
	return window{borderOf("--from", from, now), borderOf("--to", to, now)}
}

func borderOf(flag, text string, now time.Time) *border {
	if text == "" {
		return nil
	}
	e := &border{flag: flag}
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		e.number = n
		return e
	}
	if d, err := time.ParseDuration(text); err == nil {
		e.at = now.Add(-d.Abs())
		return e
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04",
		"15:04:05", "15:04"} {
		at, err := time.ParseInLocation(layout, text, now.Location())
		if err != nil {
			continue
		}
		if at.Year() == 0 { // today
			y, m, d := now.Date()
			at = time.Date(y, m, d, at.Hour(), at.Minute(), at.Second(), 0, now.Location())
		}
		e.at = at
		return e
	}
	e.id = requestID(text)
	return e
}

// requestID is a request's id without what the APIs put before it in replies.
func requestID(text string) string {
	for _, of := range []string{"chatcmpl-", "cmpl-", "msg_", "resp_"} {
		if id, ok := strings.CutPrefix(text, of); ok {
			return id
		}
	}
	return text
}

// has says whether a request is within the window. It is asked of all, in order.
func (w window) has(p *past) bool {
	return (w.from == nil || w.from.before(p)) && (w.to == nil || w.to.after(p))
}

// before says whether a request came at the border or later.
func (e *border) before(p *past) bool {
	switch {
	case !e.at.IsZero():
		return !p.at.Before(e.at)
	case e.id != "":
		e.passed = e.passed || p.recorded.ID == e.id
		return e.passed
	}
	return p.number >= e.number
}

// after says whether a request came at the border or before.
func (e *border) after(p *past) bool {
	switch {
	case !e.at.IsZero():
		return !p.at.IsZero() && !p.at.After(e.at)
	case e.id != "":
		same := p.recorded.ID == e.id
		e.passed = e.passed || same
		return same || !e.passed
	}
	return p.number <= e.number
}

// missing is an error where the window has none of the trace's requests, or one of its ends names an id that none has.
func (h *history) missing() error {
	for _, e := range []*border{h.window.from, h.window.to} {
		if e != nil && e.id != "" && !e.passed {
			return fmt.Errorf("%s %s: no request of the trace has this id: give a number, an id as the log and replies have it, "+
				"a time such as 15:04 or 2006-01-02T15:04:05, or 10m for so long ago", e.flag, e.id)
		}
	}
	if h.number > 0 && len(h.all) == 0 {
		said := fmt.Sprintf("the trace has %d, counted from 0", h.number)
		if !h.first.IsZero() {
			said += fmt.Sprintf(", which came from %s to %s", h.first.Format(time.DateTime), h.last.Format(time.DateTime))
		}
		return fmt.Errorf("no request is between --from and --to: %s", said)
	}
	return nil
}
