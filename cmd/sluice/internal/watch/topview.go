package watch

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/server"
	"github.com/sluice-ai/sluice/stages/swap"
)

// topView is the content of sluice top: what a server did between its last two reports.
type topView struct {
	env.Pane
	addr        string
	before, now *server.Inside
	town        *Town // nil: the server is of no cluster
	silent      error // why the last request failed
}

// took takes the next report. If the server was restarted, this interval counts nothing.
func (t *topView) took(now *server.Inside, err error) {
	t.silent = err
	if err != nil {
		return
	}
	t.before, t.now = t.now, now
	if now.UptimeSeconds < t.before.UptimeSeconds {
		t.before = now
	}
}

// lines are the screen's lines, at most columns wide. At most rows are returned; rows 0 means no bound.
func (t *topView) lines(columns, rows int) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, cut(fmt.Sprintf(format, args...), columns)) }
	up := time.Duration(t.now.UptimeSeconds * float64(time.Second)).Round(time.Second)
	add("sluice top  %s  up %v", t.addr, up)
	if t.silent != nil {
		add("no answer, what follows is old: %s", env.Visible(t.silent.Error()))
	}
	for i := range t.now.Models {
		for _, line := range t.model(&t.now.Models[i], columns) {
			add("%s", line)
		}
	}
	if n := t.unloaded(); n != "" {
		add("%s", n)
	}
	for _, d := range t.devices() {
		add("")
		for _, line := range t.device(columns, d) {
			add("%s", line)
		}
	}
	if t.town != nil {
		add("")
		for _, line := range t.town.lines() {
			add("%s", line)
		}
	}
	add("")
	for i, line := range t.actors(columns) {
		if line = cut(line, columns); i == 0 {
			line = t.Dimmed(line)
		}
		out = append(out, line)
	}
	if rows > 0 && len(out) > rows {
		out = out[:rows]
	}
	return out
}

// cut shortens a line to so many columns.
func cut(line string, columns int) string {
	if utf8.RuneCountInString(line) <= columns {
		return line
	}
	return string([]rune(line)[:max(0, columns-1)]) + "…"
}

// per is the rate of a count between the reports, per second.
func (t *topView) per(now, before float64) float64 {
	if took := t.now.UptimeSeconds - t.before.UptimeSeconds; took > 0 {
		return max(0, now-before) / took
	}
	return 0
}

// share is the part of a device's time between the reports that something took. That time is the sum of all that the
// device reports.
func (d *ofDevice) share(now, before float64) float64 {
	if took := d.now.Uptime - d.was.Uptime; took > 0 {
		return max(0, now-before) / took
	}
	return 0
}

// earlier is a model's state in the report before; zero if the model was loaded again since.
func (t *topView) earlier(m *server.ModelInside) (was server.ModelInside) {
	for i := range t.before.Models {
		b := &t.before.Models[i]
		if b.Name == m.Name && (b.Device.Uptime <= m.Device.Uptime || m.Device.ID == "") {
			was = *b
		}
	}
	return was
}

// unloaded lists, in one line, the models that are not loaded and that nobody waits for: a folder may have many.
func (t *topView) unloaded() string {
	var names []string
	for i := range t.now.Models {
		if m := &t.now.Models[i]; idle(m) {
			names = append(names, env.Printable(m.Name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%d unloaded: %s", len(names), strings.Join(names, ", "))
}

// idle says of a model that it is not loaded, and that nobody waits for it.
func idle(m *server.ModelInside) bool { return m.State == swap.Absent.String() && m.WaitedFor == 0 }

// model shows a model in lines of so many columns.
func (t *topView) model(m *server.ModelInside, columns int) []string {
	name := env.Printable(m.Name)
	if idle(m) {
		return nil
	}
	if m.State != "" && m.State != swap.Ready.String() {
		if m.WaitedFor > 0 {
			return []string{fmt.Sprintf("%s  %s, %d requests wait for it", name, m.State, m.WaitedFor)}
		}
		return []string{name + "  " + m.State}
	}
	was := t.earlier(m)
	parts := []string{
		fmt.Sprintf("sequences %d running, %d waiting", m.Running, m.Waiting),
		fmt.Sprintf("%.1f tokens/s", t.per(float64(m.GeneratedTokens), float64(was.GeneratedTokens))),
		fmt.Sprintf("prompts %.1f tokens/s", t.per(float64(m.PromptTokens), float64(was.PromptTokens))),
		fmt.Sprintf("%.1f steps/s", t.per(float64(m.Steps), float64(was.Steps))),
		fmt.Sprintf("%.1f rows a step", mean(float64(m.Rows-was.Rows), m.Steps-was.Steps)),
		"first token " + wait(mean(m.FirstToken-was.FirstToken, m.FirstTokens-was.FirstTokens)),
		"between tokens " + wait(mean(m.Between-was.Between, m.Gaps-was.Gaps)),
		fmt.Sprintf("KV blocks %d used, %d cached, %d free", m.BlocksUsed, m.BlocksCached, m.BlocksFree),
	}
	if m.StreamedBytes > 0 {
		rate := t.per(float64(m.StreamedBytes), float64(was.StreamedBytes))
		parts = append(parts, fmt.Sprintf("%.1f MB/s streamed", rate/1e6))
	}
	if found, missed := m.ExpertsFound-was.ExpertsFound, m.ExpertsMissed-was.ExpertsMissed; found+missed > 0 {
		parts = append(parts, fmt.Sprintf("experts %.1f %% found", 100*mean(float64(found), found+missed)))
	}
	if m.StepsFailed > 0 {
		parts = append(parts, fmt.Sprintf("%d steps failed", m.StepsFailed))
	}
	lines := append([]string{name}, flow(parts, columns)...)
	if m.Failure != "" {
		lines = slices.Insert(lines, 1, "  cannot go on: "+env.Printable(m.Failure))
	}
	return lines
}

// mean is sum divided by n; 0 for n = 0.
func mean(sum float64, n uint64) float64 {
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// flow joins parts into lines that fit, without breaking a part.
func flow(parts []string, columns int) (lines []string) {
	line := ""
	for _, p := range parts {
		switch {
		case line == "":
			line = "  " + p
		case utf8.RuneCountInString(line)+3+utf8.RuneCountInString(p) <= columns:
			line += " · " + p
		default:
			lines, line = append(lines, line), "  "+p
		}
	}
	return append(lines, line)
}

// ofDevice is a device's counts now and in the report before.
type ofDevice struct {
	name     string
	now, was *server.DeviceInside
}

// devices are the devices of the loaded models. With several models each has its own entry.
func (t *topView) devices() (all []ofDevice) {
	if len(t.now.Models) < 2 && t.now.Device.ID != "" {
		return []ofDevice{{t.now.Device.ID, &t.now.Device, &t.before.Device}}
	}
	for i := range t.now.Models {
		if m := &t.now.Models[i]; m.Device.ID != "" {
			was := t.earlier(m)
			all = append(all, ofDevice{fmt.Sprintf("%s of %s", m.Device.ID, env.Printable(m.Name)), &m.Device, &was.Device})
		}
	}
	return all
}

// device shows where a device's time went, the largest share first.
func (t *topView) device(columns int, d ofDevice) []string {
	type share struct {
		name string
		of   float64
	}
	now, was := d.now, d.was
	shares := []share{}
	for cause, seconds := range now.Idle {
		if of := d.share(seconds, was.Idle[cause]); of > 0 {
			shares = append(shares, share{strings.ReplaceAll(cause, "_", " "), of})
		}
	}
	slices.SortFunc(shares, func(a, b share) int { return cmp.Or(cmp.Compare(b.of, a.of), cmp.Compare(a.name, b.name)) })
	shares = append([]share{{"computing", d.share(now.Computing, was.Computing)}}, shares...)
	lines := []string{d.name}
	for i, s := range shares {
		if i > 4 { // smaller shares are not worth a line
			break
		}
		bar := strings.Repeat("█", int(min(1, s.of)*float64(max(0, min(columns, 120)-26))+0.5))
		lines = append(lines, strings.TrimRight(fmt.Sprintf("  %-12s %5.1f %%  %s", s.name, 100*s.of, bar), " "))
	}
	return lines
}

// actorRow is one actor, or all sessions of a model together.
type actorRow struct {
	name, credits string
	now, was      server.ActorInside
	count         int // of sessions
}

// actors shows the actors as a table.
func (t *topView) actors(columns int) []string {
	wide := columns >= 120
	name := min(44, max(14, columns-50))
	if wide {
		name = min(70, columns-82)
	}
	head := fmt.Sprintf("%-*s %7s %6s %8s %8s %14s", name, "actor", "mailbox", "busy", "wait", "msgs/s", "credits")
	if wide {
		head += fmt.Sprintf(" %12s %6s %8s %8s", "messages", "peak", "restarts", "refused")
	}
	lines := []string{head}
	for _, r := range t.rows() {
		line := fmt.Sprintf("%-*s %7d %4.0f %% %8s %8.1f %14s", name, ending(legible(r.name), name), r.now.Mailbox,
			100*t.per(r.now.Busy, r.was.Busy), wait(mean(r.now.Wait-r.was.Wait, r.now.Messages-r.was.Messages)),
			t.per(float64(r.now.Messages), float64(r.was.Messages)), r.credits)
		if wide {
			line += fmt.Sprintf(" %12d %6d %8d %8d", r.now.Messages, r.now.Most, r.now.Restarts, r.now.Refused)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// wait is how long messages waited on average.
func wait(seconds float64) string {
	switch {
	case seconds <= 0:
		return "-"
	case seconds < 1e-3:
		return fmt.Sprintf("%.0f µs", seconds*1e6)
	case seconds < 1:
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	}
	return fmt.Sprintf("%.1f s", seconds)
}

// legible is an actor's name with the model's name as people know it: in it, all but letters and digits are escaped as
// in URLs.
func legible(id string) string {
	if name, err := url.PathUnescape(id); err == nil {
		return env.Visible(name)
	}
	return id
}

// ending keeps the end of a path, which tells more than its beginning.
func ending(path string, columns int) string {
	if n := utf8.RuneCountInString(path); n > columns {
		return "…" + string([]rune(path)[n-columns+1:])
	}
	return path
}

// rows are the actors, those that models share first, with the credits that are held at them. Sessions come and go with
// requests, so they are summed in one row.
func (t *topView) rows() (rows []actorRow) {
	was := map[string]server.ActorInside{}
	remember := func(all []server.ActorInside) {
		for _, a := range all {
			was[a.ID] = a
		}
	}
	remember(t.before.Actors)
	for i := range t.before.Models {
		remember(t.before.Models[i].Actors)
	}
	take := func(all []server.ActorInside, credits []server.CreditsInside) {
		sessions := actorRow{}
		for _, a := range all {
			if at := strings.Index(a.ID, "/sessions/"); at >= 0 {
				sessions.name = a.ID[:at] + "/sessions/*"
				sessions.add(a, was[a.ID])
				continue
			}
			rows = append(rows, actorRow{name: a.ID, now: a, was: was[a.ID], credits: held(a.ID, credits)})
		}
		if sessions.count > 0 {
			sessions.credits = fmt.Sprintf("%d of them", sessions.count)
			rows = append(rows, sessions)
		}
	}
	shared := slices.Clone(t.now.Credits) // models share some actors, and count credits with them
	for i := range t.now.Models {
		shared = append(shared, t.now.Models[i].Credits...)
	}
	take(t.now.Actors, shared)
	for i := range t.now.Models {
		take(t.now.Models[i].Actors, t.now.Models[i].Credits)
	}
	return rows
}

func (r *actorRow) add(now, was server.ActorInside) {
	r.count++
	r.now.Mailbox += now.Mailbox
	r.now.Messages += now.Messages
	r.now.Busy += now.Busy
	r.now.Wait += now.Wait
	r.now.Most = max(r.now.Most, now.Most)
	r.was.Messages += was.Messages
	r.was.Busy += was.Busy
	r.was.Wait += was.Wait
}

// held are the credits held at an actor, among all that are counted.
func held(id string, all []server.CreditsInside) string {
	kind := id[strings.LastIndexByte(id, '/')+1:]
	if strings.Contains(id, "/model/") && strings.Count(id, "/") == 2 {
		kind = "model"
	}
	var texts []string
	for _, c := range all {
		if c.To == kind {
			texts = append(texts, fmt.Sprintf("%s %d/%d", c.Carries, c.Held, c.Limit))
		}
	}
	return strings.Join(texts, " ")
}
