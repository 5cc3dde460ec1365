package run

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// Place is where actors of one kind stand in the tree.
type Place struct {
	Kind    string
	Address *actor.PID // nil where there are several of the kind: their edges are addressed by At
	Line    *Line      // on which they take turns; nil: a goroutine of their own
}

// Bound says how many messages may be under way on an edge, and what keeps to it.
type Bound struct {
	Credits int    `json:"credits"`
	By      string `json:"by"` // who counts
}

// Most is a bound that the sender's work implies: it has no more to say at a time.
func Most(n int) Bound { return Bound{n, "protocol"} }

// Each bounds an edge by another one, whose credits it uses: an answer to each message, or a message for each of its
// credits that the sender holds.
func Each[M any](of Edge[M]) Bound { return Bound{of.edge.Credits, "each " + of.edge.Carries} }

// Again allows for senders that lose their state and say everything once more while the receiver has not heard yet.
func (b Bound) Again() Bound { return Bound{2 * b.Credits, b.By + ", twice"} }

// Declared is what is known of an edge before any message: a row of the printed table.
type Declared struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Carries string `json:"carries"`
	Bound
	Full string `json:"full"` // what the sender does without credit
}

// Graph is the edges of a tree of actors. It is complete before the first of them starts, but for graphs that join.
type Graph struct {
	system *System
	edges  []*Declared
	counts []count

	mu     sync.Mutex
	joined []*Graph
	rooms  map[string]*atomic.Int64 // of the mailboxes of actors that were started, by their kind
}

// count is what a counted edge counts.
type count struct {
	of    *Declared
	held  *atomic.Int64
	limit int
}

// Credits are those of a counted edge.
type Credits struct {
	From, To, Carries string
	Held, Limit       int
}

// NewGraph returns a graph without edges. Without a system nothing can be sent, but everything is declared.
func NewGraph(s *System) *Graph { return &Graph{system: s, rooms: map[string]*atomic.Int64{}} }

// Join makes room for the edges of another graph to actors of this one, which may run. Its own actors start later.
func (g *Graph) Join(other *Graph) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joined = append(g.joined, other)
	for kind, room := range g.rooms {
		room.Store(max(room.Load(), g.capacity(kind)))
	}
}

// Part ends what Join began: nothing is sent any more on the other graph's edges. Mailboxes keep the room that they
// had, since its last messages may still be there: room is for the most graphs that were ever joined at once.
func (g *Graph) Part(other *Graph) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joined = slices.DeleteFunc(g.joined, func(o *Graph) bool { return o == other })
}

// Room is that of the mailboxes of actors at p: it grows when a graph joins.
func (g *Graph) Room(p Place) *atomic.Int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	room := g.rooms[p.Kind]
	if room == nil {
		room = new(atomic.Int64)
		g.rooms[p.Kind] = room
	}
	room.Store(max(room.Load(), g.capacity(p.Kind)))
	return room
}

// Edges lists what was declared, in this order.
func (g *Graph) Edges() []Declared {
	all := make([]Declared, len(g.edges))
	for i, d := range g.edges {
		all[i] = *d
	}
	return all
}

// Credits lists those of the edges that count, as they are now.
func (g *Graph) Credits() []Credits {
	all := make([]Credits, len(g.counts))
	for i, c := range g.counts {
		all[i] = Credits{c.of.From, c.of.To, c.of.Carries, int(c.held.Load()), c.limit}
	}
	return all
}

// Capacity is how many messages the mailbox of an actor at p must hold: the credits of all edges to it, and one more
// for a Crash. A full mailbox is therefore a defect.
func (g *Graph) Capacity(p Place) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int(g.capacity(p.Kind))
}

func (g *Graph) capacity(kind string) int64 {
	n := 1 + g.credits(kind)
	for _, o := range g.joined {
		n += o.credits(kind)
	}
	return int64(n)
}

// credits are those of the graph's own edges to actors of a kind.
func (g *Graph) credits(kind string) (n int) {
	for _, d := range g.edges {
		if d.To == kind {
			n += d.Credits
		}
	}
	return n
}

// Child is an actor that another one starts.
type Child struct {
	At       Place
	Name     string                   // within its parent; by default its kind
	Graph    *Graph                   // that has its edges; by default its parent's
	Children actor.SupervisorStrategy // of its own children; nil: it has none, or none that it restarts
	Produce  func(incarnation int) actor.Actor
}

// Spawn starts children of c's actor, one after the other. Their mailboxes hold what the graph's edges bring.
func (g *Graph) Spawn(c actor.Context, children ...Child) error {
	for _, x := range children {
		if x.Name == "" {
			x.Name = x.At.Kind
		}
		if x.Graph == nil {
			x.Graph = g
		}
		err := g.system.Spawn(c, Spec{
			Name: x.Name, Room: x.Graph.Room(x.At), Line: x.At.Line, Children: x.Children, Produce: x.Produce,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Edge is the right to send messages of one type from one place to another. To have it is the only way to send. It is
// copied freely; sending costs what the mailbox costs.
type Edge[M any] struct {
	edge   *Declared
	system *System
	to     *actor.PID
}

// Connect declares an edge whose bound is kept by what its sender does; full says how.
func Connect[M any](g *Graph, from, to Place, bound Bound, full string) Edge[M] {
	d := &Declared{From: from.Kind, To: to.Kind, Carries: nameOf[M](), Bound: bound, Full: full}
	g.edges = append(g.edges, d)
	return Edge[M]{edge: d, system: g.system, to: to.Address}
}

// nameOf is the name of a message type without its package.
func nameOf[M any]() string {
	name := fmt.Sprintf("%T", *new(M))
	name, _, _ = strings.Cut(name, "[")
	return name[strings.LastIndexByte(name, '.')+1:]
}

// Send sends a message. The caller has credit for it.
func (e Edge[M]) Send(m *M) { e.system.proto.Root.Send(e.to, m) }

// At returns the edge to one of several actors of the same kind.
func (e Edge[M]) At(to *actor.PID) Edge[M] {
	e.to = to
	return e
}

// Counted is an edge that counts its credits: who sends takes one, and gives it back when the answer or the end of the
// work says that there is room. Copies share the count.
type Counted[M any] struct {
	Edge[M]
	held  *atomic.Int64
	limit int
}

// Count declares an edge that counts.
func Count[M any](g *Graph, from, to Place, credits int, full string) Counted[M] {
	c := Counted[M]{Connect[M](g, from, to, Bound{credits, "counted"}, full), new(atomic.Int64), credits}
	g.counts = append(g.counts, count{c.edge, c.held, credits})
	return c
}

// Twice makes room at the receiver for all credits once more, for who sends again what it has lost; see Again.
func (c Counted[M]) Twice() Counted[M] {
	c.edge.Bound = c.edge.Again()
	return c
}

// Take takes a credit, if there is one.
func (c Counted[M]) Take() bool {
	for {
		n := c.held.Load()
		if n >= int64(c.limit) {
			return false
		}
		if c.held.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Give gives a credit back and returns how many are still held.
func (c Counted[M]) Give() int { return int(c.held.Add(-1)) }

// Held returns how many credits are taken.
func (c Counted[M]) Held() int { return int(c.held.Load()) }

// Reset gives all credits back: a new generation has nothing under way.
func (c Counted[M]) Reset() { c.held.Store(0) }
