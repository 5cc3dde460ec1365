package actors

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/stages/kv"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/kvfiles"
	"github.com/sluice-ai/sluice/storage/sessionfiles"
)

// The mover accepts Flush, from the scheduler, and move.
//
// move, from the KV owner, asks for blocks to be copied to other tiers, or for the next ones of a transfer, or, if it
// has neither, which blocks there are files of. The same struct returns as the answer.
type move struct {
	era
	all []kv.Move
	of  *transfer // whose next blocks are copied, instead of all

	err   error     // answer
	files []error   // answer, by move from or to a file: it failed; empty where none was asked for
	known []kv.Kept // answer, where nothing was asked for
}

func (*move) Late() {}

// era is the time in which the KV owner's books hold: a generation, and how often the model had been closed when it
// began. A device that restarts compiles the model before the generation ends that its death ended: what the books say
// of the device is not true of its new memory.
type era struct{ gen, closed uint64 }

// movesAhead is how many messages of moves are under way at a time: the next one is there when one is done. Each has
// movesTogether moves at most: a device waits for its steps in flight once for all of them.
const (
	movesAhead    = 2
	movesTogether = 16
)

type moverEdges struct {
	restarted run.Edge[restarted]
	answer    run.Edge[move]
}

// mover copies blocks of a model's caches between tiers, in order, on a goroutine of its own: a copy from or to a GPU
// waits for what was submitted there before, and one from or to a file for the drive. The KV owner decides which blocks
// move, and knows who waits for them.
type mover struct {
	system      *run.System
	out         moverEdges
	memory      *cacheMemory
	incarnation int
	gen         uint64
}

func (v *mover) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		if v.incarnation > 0 {
			v.out.restarted.Send(&restarted{})
		}
	case *run.Flush:
		v.gen = m.Gen
		m.Done()
	case *move:
		if v.takes(m) {
			v.carry(m)
			v.out.answer.Send(m)
		}
	default:
		v.system.Lifecycle(c)
	}
}

// takes says whether a move is carried out. Those of an older generation have no answer. What there are files of is
// asked before a generation begins.
func (v *mover) takes(m *move) bool {
	return m.gen == v.gen || m.of == nil && len(m.all) == 0
}

func (v *mover) carry(m *move) {
	switch {
	case m.of != nil:
		m.err = v.memory.transfer(m.era, m.of)
	case len(m.all) == 0:
		m.known = v.memory.kept.known()
	default:
		m.err = v.memory.move(m)
	}
}

// cacheMemory is the memory of the blocks of a model's caches: on the device while the model is compiled, and on the
// host. It outlives incarnations of the device and of the mover.
type cacheMemory struct {
	mu     sync.RWMutex   // held, by several readers of files maybe, while blocks are copied
	device backend.Blocks // nil: the model is not compiled
	closed atomic.Uint64  // how often it was closed
	host   [][]byte       // by class, one block after the other; nil until the first one comes
	rooms  []kv.Class     // by class: how many blocks each tier has
	carry  []backend.Carriage
	kept   kept
	traits []sessionfiles.Trait // all that blocks' bytes depend on
}

// errNotCompiled is the error of a move for a model that was closed since the move's era began, whether or not it is
// compiled again: a new generation is about to begin.
var errNotCompiled = errors.New("the model is closed")

// open lets blocks of a compiled model be copied.
func (x *cacheMemory) open(device backend.Blocks) {
	x.mu.Lock()
	x.device = device
	x.mu.Unlock()
}

// close lets no block of the model be copied any more, and waits for the copy under way.
func (x *cacheMemory) close() {
	x.mu.Lock()
	x.device = nil
	x.closed.Add(1)
	x.mu.Unlock()
}

// holds returns an error if the device has lost what it had in an era. The mutex must be held.
func (x *cacheMemory) holds(e era) error {
	if x.device == nil || x.closed.Load() != e.closed {
		return errNotCompiled
	}
	return nil
}

// free gives the host memory back. The model must have been closed before.
func (x *cacheMemory) free() (err error) {
	for _, area := range x.host {
		if area != nil {
			err = errors.Join(err, mem.Free(area))
		}
	}
	x.host = nil
	return errors.Join(err, x.kept.free())
}

// move copies blocks. Host memory for all blocks of a class is allocated when the first one comes.
func (x *cacheMemory) move(m *move) error {
	if m.files = m.files[:0]; m.all[0].Text != nil {
		return x.file(m)
	}
	return x.copyAll(m)
}

// copyAll copies blocks between the device and the host's memory.
func (x *cacheMemory) copyAll(of *move) (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.holds(of.era); err != nil {
		return err
	}
	x.carry = x.carry[:0]
	for i := range of.all {
		m := &of.all[i]
		c := backend.Carriage{Class: m.Class}
		there := m.Block
		switch [2]kv.Tier{m.From, m.To} {
		case [2]kv.Tier{kv.Device, kv.Host}:
			c.Out, c.Block, there = true, m.Block, m.Into
		case [2]kv.Tier{kv.Host, kv.Device}:
			c.Block = m.Into
		default:
			return fmt.Errorf("a block of cache class %d goes from tier %d to %d: there is no such way", m.Class, m.From, m.To)
		}
		if c.Memory, err = x.place(m.Class, there); err != nil {
			return err
		}
		x.carry = append(x.carry, c)
	}
	return x.device.Carry(x.carry)
}

// place returns the host memory of a block of a class.
func (x *cacheMemory) place(class int, block int32) (_ []byte, err error) {
	each := x.device.BlockBytes(class)
	if x.host == nil {
		x.host = make([][]byte, len(x.rooms))
	}
	if x.host[class] == nil {
		if x.host[class], err = mem.Alloc(int64(x.rooms[class].Host) * int64(each)); err != nil {
			return nil, fmt.Errorf("memory for blocks of the KV cache: %w", err)
		}
	}
	return x.host[class][int(block)*each:][:each], nil
}

// file carries out moves from and to files. Those that failed are noted; an error is one of the device.
func (x *cacheMemory) file(m *move) error {
	if m.all[0].To == kv.Gone {
		for i := range m.all {
			x.kept.shelf.Remove(kvfiles.Key(m.all[i].Text.Key), m.all[i].Class)
		}
		return nil
	}
	m.files = append(m.files[:0], make([]error, len(m.all))...)
	if m.all[0].To == kv.Disk && x.kept.unfit != nil && now().Before(x.kept.until) {
		for i := range m.files {
			m.files[i] = x.kept.unfit
		}
		return nil
	}
	for begin := 0; begin < len(m.all); {
		part, err := x.stage(m, begin)
		if err != nil {
			return err
		}
		if err := x.filePart(m, begin, part); err != nil {
			return err
		}
		begin += len(part)
	}
	x.kept.tell(m.all[0].To == kv.Disk, m.files)
	return nil
}

// stage gives staging memory to the first moves that remain, as many as there is room for. What is read to a block in
// the program's memory needs none.
func (x *cacheMemory) stage(of *move, begin int) (part []backend.Carriage, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.holds(of.era); err != nil {
		return nil, err
	}
	rest := x.kept.staging
	for i := range of.all[begin:] {
		m := &of.all[begin+i]
		if m.To == kv.Device {
			if there, err := x.device.Parts(m.Class, m.Into); err != nil {
				return nil, err
			} else if len(there) > 0 {
				part = append(part, backend.Carriage{Class: m.Class, Block: m.Into})
				continue
			}
		}
		each := x.device.BlockBytes(m.Class)
		if len(rest) < each {
			if i > 0 {
				break
			}
			if rest, err = x.kept.room(max(each, place.Staged)); err != nil {
				return nil, err
			}
		}
		c := backend.Carriage{Class: m.Class, Block: m.Into, Memory: rest[:each:each]}
		if m.To == kv.Disk {
			c.Out, c.Block = true, m.Block
		}
		part, rest = append(part, c), rest[each:]
	}
	return part, nil
}

// filePart carries out the moves from one on that were staged.
func (x *cacheMemory) filePart(m *move, begin int, part []backend.Carriage) error {
	all, errs := m.all[begin:][:len(part)], m.files[begin:]
	if all[0].To == kv.Disk {
		if err := x.fetchAll(m.era, all, part); err != nil {
			return err
		}
		each(len(all), func(i int) {
			t := all[i].Text
			errs[i] = x.kept.shelf.Write(kvfiles.Header{Key: kvfiles.Key(t.Key), Parent: kvfiles.Key(t.Parent), Salt: t.Salt,
				Class: all[i].Class, Tokens: t.Tokens, Before: t.Before}, part[i].Memory)
		})
		return nil
	}
	return x.readPart(m.era, all, part, errs)
}

// readPart reads blocks from files, where they lie or to staging memory, and copies what is there to the device while
// others are read.
func (x *cacheMemory) readPart(of era, all []kv.Move, part []backend.Carriage, errs []error) error {
	there := arrived{carry: func(due []backend.Carriage) error { return x.carryAll(of, due) }}
	each(len(all), func(i int) {
		key := kvfiles.Key(all[i].Text.Key)
		if part[i].Memory == nil {
			var err error
			if errs[i], err = x.readInPlace(of, key, &part[i]); err != nil {
				there.stop(err)
			}
			return
		}
		errs[i] = x.kept.shelf.Read(key, all[i].Class, [][]byte{part[i].Memory}, now())
		if errs[i] == nil {
			there.add(part[i])
		}
	})
	return there.err
}

// readInPlace reads a block from a file to where it lies in the program's memory. The model is not closed meanwhile.
// What a file that failed has left there is cleared: a step computes with whatever stands behind a sequence's rows,
// and no bits of a file may be taken for numbers that are finite.
func (x *cacheMemory) readInPlace(of era, key kvfiles.Key, c *backend.Carriage) (file, device error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if err := x.holds(of); err != nil {
		return nil, err
	}
	parts, err := x.device.Parts(c.Class, c.Block)
	if err != nil {
		return nil, err
	}
	if file = x.kept.shelf.Read(key, c.Class, parts, now()); file != nil {
		for _, p := range parts {
			clear(p)
		}
	}
	return file, nil
}

// arrived are blocks that were read. Who has read one copies it, with those that come until that is done, unless
// another does so already: no goroutine waits for another, and a device is asked as seldom as it is slow.
type arrived struct {
	carry func([]backend.Carriage) error

	mu   sync.Mutex
	due  []backend.Carriage
	busy bool
	err  error // nothing is copied any more
}

func (a *arrived) add(c backend.Carriage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.due = append(a.due, c); a.busy {
		return
	}
	a.busy = true
	for len(a.due) > 0 && a.err == nil {
		due := a.due
		a.due = nil
		a.mu.Unlock()
		err := a.carry(due)
		a.mu.Lock()
		a.err = cmp.Or(a.err, err)
	}
	a.busy = false
}

// stop has nothing copied any more.
func (a *arrived) stop(err error) {
	a.mu.Lock()
	a.err = err
	a.mu.Unlock()
}

// fetchAll copies blocks from where they lie to staging memory.
func (x *cacheMemory) fetchAll(of era, all []kv.Move, part []backend.Carriage) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.holds(of); err != nil {
		return err
	}
	var out []backend.Carriage
	for i := range all {
		if all[i].From == kv.Device {
			out = append(out, part[i])
			continue
		}
		b, err := x.place(all[i].Class, all[i].Block)
		if err != nil {
			return err
		}
		copy(part[i].Memory, b)
	}
	return x.device.Carry(out)
}

// transfer copies the next blocks of a transfer. The error is one of the device; what else fails is noted.
func (x *cacheMemory) transfer(of era, t *transfer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over() {
		return nil
	}
	part, at, err := x.stageOf(of, t)
	if err != nil || t.failed != nil {
		return err
	}
	if t.do == copyOut {
		if err := x.carryAll(of, part); err != nil {
			return err
		}
	}
	for i, c := range part {
		if t.failed = t.carry(c.Class, at[i], c.Memory); t.failed != nil {
			return nil
		}
	}
	if t.do == copyIn {
		if err := x.carryAll(of, part); err != nil {
			return err
		}
	}
	t.copied += len(part)
	return nil
}

// stageOf gives staging memory to the next blocks of a transfer, as many as there is room for, and says which of their
// tables' blocks they are.
func (x *cacheMemory) stageOf(of era, t *transfer) (part []backend.Carriage, at []int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.holds(of); err != nil {
		return nil, nil, err
	}
	each := make([]int, len(t.tables))
	for i := range each {
		each[i] = x.device.BlockBytes(i)
	}
	if t.copied == 0 {
		if t.failed = t.ready(t.tables, each); t.failed != nil {
			return nil, nil, nil
		}
	}
	rest, n := x.kept.staging, 0
	for class := range t.tables {
		for i, b := range t.tables[class].Blocks {
			if n++; n <= t.copied {
				continue
			}
			if len(part) == movesTogether {
				return part, at, nil
			}
			if len(rest) < each[class] {
				if len(part) > 0 {
					return part, at, nil
				}
				if rest, err = x.kept.room(max(each[class], place.Staged)); err != nil {
					t.failed = fmt.Errorf("copying a session's blocks: %w", err)
					return nil, nil, nil
				}
			}
			c := backend.Carriage{Class: class, Block: b, Out: t.do == copyOut, Memory: rest[:each[class]:each[class]]}
			part, at, rest = append(part, c), append(at, i), rest[each[class]:]
		}
	}
	return part, at, nil
}

// carryAll copies blocks from or to the device.
func (x *cacheMemory) carryAll(of era, part []backend.Carriage) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.holds(of); err != nil {
		return err
	}
	return x.device.Carry(part)
}
