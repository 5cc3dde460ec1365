package llamacpp

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// Answers of POST /slots/{id}.
type (
	slotSaved struct {
		ID       int         `json:"id_slot"`
		Filename string      `json:"filename"`
		Tokens   int         `json:"n_saved"`
		Bytes    int64       `json:"n_written"`
		Timings  slotSavedIn `json:"timings"`
	}
	slotRestored struct {
		ID       int            `json:"id_slot"`
		Filename string         `json:"filename"`
		Tokens   int            `json:"n_restored"`
		Bytes    int64          `json:"n_read"`
		Timings  slotRestoredIn `json:"timings"`
	}
	slotErased struct {
		ID     int `json:"id_slot"`
		Tokens int `json:"n_erased"`
	}
	slotSavedIn struct {
		Milliseconds float64 `json:"save_ms"`
	}
	slotRestoredIn struct {
		Milliseconds float64 `json:"restore_ms"`
	}
)

// mostName is how many bytes the name of a session has at most.
const mostName = 255

// session serves POST /slots/{id}?action=save|restore|erase with {"filename": NAME}, for the model that the query
// names. NAME is a name, of the client's own sessions, and never a path. Erasing with one deletes the session as well.
func (a *api) session(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	if a.Sessions == nil {
		return wire.Refused(fasthttp.StatusNotImplemented, "not_supported",
			"this server saves no slots: start it with --state DIR, where they are kept")
	}
	action, name := string(rc.QueryArgs().Peek("action")), ""
	if body.Text != "" {
		f := wire.ReadFields(body.Text, body.Budget)
		if f.Text("filename", &name); f.Fault != nil {
			return f.Fault
		}
	}
	if fault := checkSession(action, name); fault != nil {
		return fault
	}
	m, fault := a.AskedTo(x, answer.Write, string(rc.QueryArgs().Peek("model")))
	if fault != nil {
		return fault
	}
	text := strings.TrimPrefix(string(rc.Path()), "/slots/")
	id, err := strconv.Atoi(text)
	if err != nil || id < 0 || id >= m.Engine.Info.Sequences {
		return wire.Invalid("id_slot", "invalid_value", "the slot is %.20q: want a number from 0 to %d", text,
			m.Engine.Info.Sequences-1)
	}
	done, err := a.act(m.Engine, action, actors.Slot{Owner: x.Owner(), ID: id}, name)
	if err != nil {
		return a.unmoved(x, err)
	}
	wire.WriteJSON(rc, done)
	return nil
}

// checkSession checks what is to be done, and the name of the session.
func checkSession(action, name string) *wire.Fault {
	bad := func(r rune) bool { return r == '/' || r == '\\' || unicode.IsControl(r) }
	switch {
	case action != "save" && action != "restore" && action != "erase":
		return wire.Invalid("action", "invalid_value", "action is %s: want ?action=save, restore or erase", wire.Shown(action))
	case name == "" && action == "erase":
		return nil
	case name == "", name == ".", name == "..", len(name) > mostName, !utf8.ValidString(name), strings.ContainsFunc(name, bad):
		return wire.Invalid("filename", "invalid_value", "filename is %s: want a name of 1 to %d bytes, without slashes",
			wire.Shown(name), mostName)
	}
	return nil
}

// act saves, restores or erases a slot, and returns the answer.
func (a *api) act(e *actors.Engine, action string, of actors.Slot, name string) (any, error) {
	began := time.Now()
	took := func() float64 { return float64(time.Since(began).Microseconds()) / 1000 }
	switch action {
	case "save":
		m, err := a.Sessions.Save(e, of, name)
		return slotSaved{of.ID, name, m.Tokens, m.Bytes, slotSavedIn{took()}}, err
	case "restore":
		m, err := a.Sessions.Restore(e, of, name)
		return slotRestored{of.ID, name, m.Tokens, m.Bytes, slotRestoredIn{took()}}, err
	}
	if name != "" && !a.Sessions.Remove(of.Owner, name) {
		return nil, actors.ErrSessionMissing
	}
	m, err := a.Sessions.Erase(e, of)
	return slotErased{of.ID, m.Tokens}, err
}

// unmoved is the fault of a session that could not be saved, restored or erased.
func (a *api) unmoved(x *exchange.Exchange, err error) *wire.Fault {
	var path *fs.PathError
	switch {
	case errors.Is(err, actors.ErrSessionMissing):
		return wire.Refused(fasthttp.StatusNotFound, "not_found", "there is no session of this name: save one first")
	case errors.Is(err, actors.ErrNoText), errors.Is(err, actors.ErrNotCached), errors.Is(err, actors.ErrForeign),
		errors.Is(err, actors.ErrSessionBroken):
		return wire.Invalid("", "invalid_value", "%v", err)
	case errors.Is(err, actors.ErrSessionsFull):
		return wire.Refused(fasthttp.StatusInsufficientStorage, "storage_full", "%v", err)
	case errors.Is(err, actors.ErrCrowded):
		return wire.Unavailable("overloaded", "%v", err)
	case errors.Is(err, actors.ErrClosed):
		return wire.Stopping()
	case errors.As(err, &path):
		err = path.Err // clients are not told where files lie
	}
	x.Failed = err.Error()
	return wire.Refused(fasthttp.StatusInternalServerError, "session_failed", "the session's file cannot be used: %v", err)
}
