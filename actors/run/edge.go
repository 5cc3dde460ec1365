package run

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// Place is the position in the tree of the actors of one kind: their address, and the line that runs their mailboxes.
type Place struct {
	Kind    string
	Address *actor.PID // nil where there are several of the kind: their edges are addressed by At
	Line    *Line      // on which they take turns; nil: a goroutine of their own
}

// Bound is how many messages may be under way on an edge at most, and what keeps the sender to that.
type Bound struct {
	Credits int    `json:"credits"`
	By      string `json:"by"` // "counted", "protocol", or "each" and the message type of the edge that bounds it
}

// Most is a bound that follows from what the sender does: it never has more than n messages to send at a time.
func Most(n int) Bound { return Bound{n, "protocol"} }

// Each is the bound of an edge that carries one message for each message of another edge, as answers do, or for each
// credit that the sender holds there.
func Each[M any](of Edge[M]) Bound { return Bound{of.edge.Credits, "each " + of.edge.Carries} }

// Again doubles a bound, for a sender that may lose its state in a restart and send everything once more before the
// receiver has handled what was sent first.
func (b Bound) Again() Bound { return Bound{2 * b.Credits, b.By + ", twice"} }

// Declared is the declaration of an edge, made before any message is sent: a row of the printed table.
type Declared struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Carries string `json:"carries"`
	Bound
	Full string `json:"full"` // what the sender does without credit
}

// Graph is the set of edges in a tree of actors. They are declared before the first actor starts; later, only whole
// graphs are added, by Join.
type Graph struct {
	system *System
	edges  []*Declared
	counts []count

	mu     sync.Mutex
	joined []*Graph
	rooms  map[string]*atomic.Int64 // by kind of actor: how many messages each lane of a mailbox may hold; see Room
}

// count is the account of a counted edge: the credits that are taken, and how many there are.
type count struct {
	of    *Declared
	held  *atomic.Int64
	limit int
}

// Credits says how many credits of a counted edge are taken, and how many there are.
type Credits struct {
	From, To, Carries string
	Held, Limit       int
}

// NewGraph returns a graph without edges. Without a system nothing can be sent, but everything is declared.
func NewGraph(s *System) *Graph { return &Graph{system: s, rooms: map[string]*atomic.Int64{}} }

// Join adds another graph, with edges to actors of this one: the mailboxes of those actors, which may run already, get
// room for its messages. The other graph's own actors start later.
func (g *Graph) Join(other *Graph) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joined = append(g.joined, other)
	for kind, room := range g.rooms {
		room.Store(max(room.Load(), g.capacity(kind)))
	}
}

// Part undoes Join: nothing is sent any more on the other graph's edges. Mailboxes keep the room that they had, since
// its last messages may still be there; so they have room for the most graphs that were ever joined at once.
func (g *Graph) Part(other *Graph) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joined = slices.DeleteFunc(g.joined, func(o *Graph) bool { return o == other })
}

// Room returns how many messages a mailbox of an actor at p may hold. The number grows when a graph joins.
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

// Edges lists the graph's own edges, in the order of their declaration.
func (g *Graph) Edges() []Declared {
	all := make([]Declared, len(g.edges))
	for i, d := range g.edges {
		all[i] = *d
	}
	return all
}

// Credits lists the credits of the counted edges, as they are now.
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
	Children actor.SupervisorStrategy // supervises its own children; nil: it has none, or restarts none
	Produce  func(incarnation int) actor.Actor
}

// Spawn starts children of c's actor, one after the other. Their mailboxes have room for the credits of all edges to
// them.
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

// Connect declares an edge that counts no credits: what its sender does keeps it within bound, and full says how.
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

// Counted is an edge that counts its credits: the sender takes one for each message, and gives it back when the
// answer, or the end of the work, says that the receiver has room again. Copies share the count.
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

// Twice doubles the receiver's room, not the credits, for a sender that sends everything once more after a restart;
// see Again.
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
