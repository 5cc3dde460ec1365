package swap

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// story tells a state what happens, line by line, and collects what it decides. Times are seconds.
type story struct {
	*State
	at    time.Time
	needs map[string]Room
	next  Ticket
}

func begin(l Limits, needs map[string]int64) *story {
	s := &story{State: New(l), at: time.Unix(0, 0), needs: map[string]Room{}}
	for name, n := range needs {
		s.needs[name] = Room{Host: n}
	}
	return s
}

// tell is one of: want a, meek a, done a, measured a, loaded a, failed a, unloaded a, sick a, changed a,
// dismiss a, cancel 3, after 5s.
func (s *story) tell(t *testing.T, line string) string {
	what, arg, _ := strings.Cut(line, " ")
	var out []Effect
	var err error
	switch what {
	case "want", "meek":
		s.next++
		out, err = s.Want(s.at, s.next, arg, what == "meek")
	case "done":
		out = s.Done(s.at, arg)
	case "measured":
		out = s.Measured(s.at, arg, s.needs[arg])
	case "loaded":
		out = s.Loaded(s.at, arg)
	case "failed":
		out = s.Failed(s.at, arg)
	case "unloaded":
		out = s.Unloaded(s.at, arg)
	case "sick":
		out = s.Sick(s.at, arg)
	case "changed":
		out = s.Changed(s.at, arg)
	case "dismiss":
		out = s.Dismiss(s.at, arg)
	case "cancel":
		var n Ticket
		_, err := fmt.Sscan(arg, &n)
		require.NoError(t, err)
		out = s.Cancel(s.at, n)
	case "after":
		d, err := time.ParseDuration(arg)
		require.NoError(t, err)
		s.at = s.at.Add(d)
		out = s.Tick(s.at)
	default:
		t.Fatalf("unknown line %q", line)
	}
	if err != nil {
		return "full"
	}
	var words []string
	for _, e := range out {
		switch e.Action {
		case Measure:
			words = append(words, "measure "+e.Model)
		case Load:
			words = append(words, fmt.Sprintf("load %s in %d", e.Model, e.Room.Host))
		case Unload:
			words = append(words, "unload "+e.Model)
		case Admit:
			words = append(words, fmt.Sprintf("admit %d", e.Ticket))
		case Refuse:
			words = append(words, fmt.Sprintf("refuse %d", e.Ticket))
		case Crowded:
			words = append(words, fmt.Sprintf("crowded %d", e.Ticket))
		}
	}
	return strings.Join(words, ", ")
}

func TestStories(t *testing.T) {
	for _, c := range []struct {
		name  string
		l     Limits
		needs map[string]int64
		lines []string // what happens → what is decided
	}{
		{"one is loaded once for all who ask", Limits{Room: Room{Host: 10}}, map[string]int64{"a": 4}, []string{
			"want a → measure a", "want a → ", "measured a → load a in 4", "want a → ", "loaded a → admit 1, admit 2, admit 3",
			"want a → admit 4", "done a → ",
		}},
		{"one that is dismissed leaves with its last user", Limits{Room: Room{Host: 10}}, map[string]int64{"a": 4}, []string{
			"dismiss a → ", "want a → measure a", "measured a → load a in 4", "loaded a → admit 1", "dismiss a → ",
			"done a → unload a", "unloaded a → ", "dismiss a → ",
		}},
		{"unless somebody asks again", Limits{Room: Room{Host: 10}}, map[string]int64{"a": 4}, []string{
			"want a → measure a", "dismiss a → ", "measured a → load a in 4", "dismiss a → ", "loaded a → admit 1",
			"want a → admit 2", "done a → ", "done a → ", "dismiss a → unload a", "want a → ", "unloaded a → measure a",
		}},
		{"two that fit stay", Limits{Room: Room{Host: 10}}, map[string]int64{"a": 4, "b": 6}, []string{
			"want a → measure a", "measured a → load a in 4", "want b → measure b", "measured b → ",
			"loaded a → admit 1, load b in 6", "loaded b → admit 2",
		}},
		{"the longest unused leaves", Limits{Room: Room{Host: 10}}, map[string]int64{"a": 4, "b": 4, "c": 4}, []string{
			"want a → measure a", "measured a → load a in 4", "loaded a → admit 1", "done a → ", "after 1s → ",
			"want b → measure b", "measured b → load b in 4", "loaded b → admit 2", "done b → ", "after 1s → ",
			"want a → admit 3", "done a → ", "want c → measure c", "measured c → unload b", "unloaded b → load c in 4",
			"loaded c → admit 4",
		}},
		{"no more leave than must", Limits{Room: Room{Host: 10}}, map[string]int64{"a": 2, "b": 6, "c": 7}, []string{
			"want a → measure a", "measured a → load a in 2", "loaded a → admit 1", "done a → ", "after 1s → ",
			"want b → measure b", "measured b → load b in 6", "loaded b → admit 2", "done b → ", "after 1s → ",
			"want c → measure c", "measured c → unload b", "unloaded b → load c in 7",
		}},
		{"one in use stays, and closes when its time is over", Limits{Room: Room{Host: 10}}, map[string]int64{"a": 6, "b": 6},
			[]string{
				"want a → measure a", "measured a → load a in 6", "after 3s → ", "loaded a → admit 1",
				"want b → measure b", "measured b → ", "want a → admit 3", "done a → ", "after 2s → ", "want a → admit 4",
				"after 1s → ", "want a → ", "done a → ", "done a → unload a", "unloaded a → measure a, load b in 6",
				"measured a → ", "loaded b → admit 2", "done b → unload b", "unloaded b → load a in 6", "loaded a → admit 5",
			}},
		{"who closed for nothing opens again", Limits{Room: Room{Host: 10}}, map[string]int64{"a": 6, "b": 6}, []string{
			"want a → measure a", "measured a → load a in 6", "loaded a → admit 1", "want b → measure b", "measured b → ",
			"after 2s → ", "want a → ", "cancel 2 → admit 3",
		}},
		{"a failure is theirs who asked", Limits{Room: Room{Host: 10}}, map[string]int64{"a": 4, "b": 4}, []string{
			"want a → measure a", "want b → measure b", "want a → ", "measured b → ", "failed a → refuse 1, refuse 3, load b in 4",
			"loaded b → admit 2", "want a → measure a", "measured a → load a in 4", "failed a → refuse 4", "want b → admit 5",
		}},
		{"a meek one makes nobody leave", Limits{Room: Room{Host: 10}}, map[string]int64{"a": 6, "b": 6}, []string{
			"meek a → measure a", "measured a → load a in 6", "loaded a → admit 1", "done a → ",
			"meek b → measure b", "measured b → crowded 2", "want b → measure b", "measured b → unload a",
		}},
		{"nobody asks for long", Limits{Room: Room{Host: 10}, KeepAlive: 5 * time.Second}, map[string]int64{"a": 4}, []string{
			"want a → measure a", "measured a → load a in 4", "loaded a → admit 1", "after 9s → ", "done a → ", "after 4s → ",
			"want a → admit 2", "done a → ", "after 4s → ", "after 1s → unload a", "want a → ", "unloaded a → measure a",
		}},
		{"one whose file changed is loaded again", Limits{Room: Room{Host: 10}}, map[string]int64{"a": 4}, []string{
			"want a → measure a", "measured a → load a in 4", "loaded a → admit 1", "changed a → ", "want a → ",
			"done a → unload a", "changed a → ", "unloaded a → measure a", "measured a → load a in 4", "changed a → ",
			"loaded a → unload a", "unloaded a → measure a", "measured a → load a in 4", "loaded a → admit 2", "done a → ",
			"changed a → unload a", "unloaded a → ", "changed a → ", "changed b → ",
		}},
		{"one that died is loaded again", Limits{Room: Room{Host: 10}}, map[string]int64{"a": 4}, []string{
			"want a → measure a", "measured a → load a in 4", "loaded a → admit 1", "sick a → ", "want a → ",
			"done a → unload a", "unloaded a → measure a", "measured a → load a in 4", "loaded a → admit 2",
		}},
		{"the queue is bounded", Limits{Room: Room{Host: 10}, Queue: 2}, map[string]int64{"a": 4, "b": 4}, []string{
			"want a → measure a", "measured a → load a in 4", "want b → measure b", "want b → full", "loaded a → admit 1",
			"want a → admit 4", "want b → ", "want b → full",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.l.Queue == 0 {
				c.l.Queue = 100
			}
			s := begin(c.l, c.needs)
			for i, line := range c.lines {
				what, want, ok := strings.Cut(line, " →")
				require.True(t, ok)
				require.Equal(t, strings.TrimSpace(want), s.tell(t, what), "line %d: %s", i+1, what)
			}
		})
	}
}

// TestEveryTicketIsServed: whatever happens in whichever order, room is kept, nobody who is used leaves, and whoever
// asked gets an answer once the others are done.
func TestEveryTicketIsServed(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := &world{State: New(Limits{Room: Room{Host: 10}, Queue: 1 << 20,
			KeepAlive: time.Duration(rapid.IntRange(0, 5).Draw(r, "keep")) * time.Second}),
			at: time.Unix(0, 0), using: map[string]int{}, pending: map[Ticket]string{}}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			w.step(r)
		}
		for n := 0; len(w.pending) > 0; n++ {
			require.Less(r, n, 10_000, "somebody waits for ever: %v", w.pending)
			w.finish(r)
		}
	})
}

// world carries effects out, some later than others.
type world struct {
	*State
	at      time.Time
	todo    []Effect
	using   map[string]int
	pending map[Ticket]string
	next    Ticket
}

func needOf(name string) Room { return Room{Host: int64(name[0]-'a')*2 + 4} }

func (w *world) take(r *rapid.T, effects []Effect) {
	for _, e := range effects {
		switch e.Action {
		case Admit:
			require.Equal(r, e.Model, w.pending[e.Ticket])
			require.Equal(r, Ready, w.Phase(e.Model))
			delete(w.pending, e.Ticket)
			w.using[e.Model]++
		case Refuse, Crowded:
			require.Equal(r, e.Model, w.pending[e.Ticket])
			delete(w.pending, e.Ticket)
		case Unload:
			require.Zero(r, w.using[e.Model], "%s is used", e.Model)
			w.todo = append(w.todo, e)
		case Load:
			require.Equal(r, needOf(e.Model), e.Room)
			w.todo = append(w.todo, e)
		default:
			w.todo = append(w.todo, e)
		}
	}
	require.True(r, w.limits.Room.holds(w.Used()), "%v used", w.Used())
}

// carry does one thing that was decided.
func (w *world) carry(r *rapid.T, i int, fails bool) {
	e := w.todo[i]
	w.todo = append(w.todo[:i:i], w.todo[i+1:]...)
	switch {
	case e.Action == Unload:
		w.take(r, w.Unloaded(w.at, e.Model))
	case fails:
		w.take(r, w.Failed(w.at, e.Model))
	case e.Action == Measure:
		w.take(r, w.Measured(w.at, e.Model, needOf(e.Model)))
	default:
		w.take(r, w.Loaded(w.at, e.Model))
	}
}

func (w *world) step(r *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(r, "model")
	switch rapid.IntRange(0, 6).Draw(r, "event") {
	case 0, 1:
		w.next++
		w.pending[w.next] = name
		effects, err := w.Want(w.at, w.next, name, rapid.Bool().Draw(r, "meek"))
		require.NoError(r, err)
		w.take(r, effects)
	case 2:
		if len(w.todo) > 0 {
			w.carry(r, rapid.IntRange(0, len(w.todo)-1).Draw(r, "which"), rapid.IntRange(0, 4).Draw(r, "fails") == 0)
		}
	case 3:
		if w.using[name] > 0 {
			w.using[name]--
			w.take(r, w.Done(w.at, name))
		}
	case 4:
		w.at = w.at.Add(time.Duration(rapid.IntRange(1, 2000).Draw(r, "ms")) * time.Millisecond)
		w.take(r, w.Tick(w.at))
	case 5:
		w.take(r, w.Sick(w.at, name))
	case 6:
		t := Ticket(rapid.IntRange(0, int(w.next)).Draw(r, "ticket"))
		delete(w.pending, t)
		w.take(r, w.Cancel(w.at, t))
	}
}

// finish lets time pass, ends uses, and carries out what was decided.
func (w *world) finish(r *rapid.T) {
	for name := range w.using {
		for w.using[name] > 0 {
			w.using[name]--
			w.take(r, w.Done(w.at, name))
		}
	}
	if len(w.todo) > 0 {
		w.carry(r, 0, false)
		return
	}
	at, ok := w.Next(w.at)
	require.True(r, ok || len(w.pending) == 0, "nothing is on its way, and %v wait", w.pending)
	if ok {
		w.at = at
		w.take(r, w.Tick(w.at))
	}
}

// TestRoomIsOfEachDevice: what has no room on one device does not fit, however much another one has.
func TestRoomIsOfEachDevice(t *testing.T) {
	two := Room{Host: 10, Devices: []int64{4, 4}}
	require.True(t, two.holds(Room{Host: 10, Devices: []int64{4, 4}}))
	require.True(t, two.holds(Room{Devices: []int64{3}}))
	require.False(t, two.holds(Room{Devices: []int64{5, 1}}))
	require.False(t, two.holds(Room{Devices: []int64{0, 0, 1}}), "of a device that is not there")
	require.False(t, Room{}.holds(Room{Devices: []int64{1}}))
	require.Equal(t, Room{Host: 3, Devices: []int64{4, 1}}, Room{Host: 3, Devices: []int64{5, 1}}.Within(two))
	require.Equal(t, Room{Host: 11, Devices: []int64{5, 4}}, two.plus(Room{Host: 1, Devices: []int64{1}}))
}
