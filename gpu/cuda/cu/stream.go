//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cu

import (
	"runtime"
	"unsafe"
)

// Stream is a queue of commands for the card, which it runs in order.
type Stream struct {
	d      *Device
	handle uintptr
}

// NewStream makes a stream that waits for no other.
func (d *Device) NewStream() (*Stream, error) {
	const nonBlocking = 1
	handle := new(uintptr)
	if r := d.call(d.lib.streamCreate, uintptr(unsafe.Pointer(handle)), nonBlocking); r != Success {
		return nil, r.err("making a stream")
	}
	return &Stream{d, *handle}, nil
}

// Close destroys the stream.
func (s *Stream) Close() error {
	return s.d.call(s.d.lib.streamDestroy, s.handle).err("closing a stream")
}

// Idle says whether all commands of the stream are done. An error comes from one of them.
func (s *Stream) Idle() (bool, error) {
	r := s.d.enter()
	defer s.d.leave()
	if r == Success {
		r = callEach(s.d.lib.streamQuery, s.handle)
	}
	switch r {
	case Success:
		return true, nil
	case notReady:
		return false, nil
	}
	return false, r.err("asking " + s.d.Facts.Name)
}

// Rest waits until all commands of the stream are done.
func (s *Stream) Rest() error {
	return s.d.call(s.d.lib.streamSync, s.handle).err("waiting for a stream")
}

// The functions below are called in Device.Within.

// WaitFor makes a stream wait until a word in page-locked memory is at least a value.
func (s *Stream) WaitFor(word *uint64, value uint64) error {
	const atLeast = 0
	return callEach(s.d.lib.waitValue, s.handle, uintptr(unsafe.Pointer(word)), uintptr(value), atLeast).err("waiting in a stream")
}

// Write makes a stream write a word in page-locked memory, when all commands before are done and what they wrote is
// visible.
func (s *Stream) Write(word *uint64, value uint64) error {
	return callEach(s.d.lib.writeValue, s.handle, uintptr(unsafe.Pointer(word)), uintptr(value), 0).err("writing in a stream")
}

// Copy copies bytes between addresses of the card, or of page-locked memory.
func (s *Stream) Copy(to, from, n uint64) error {
	return callEach(s.d.lib.copyAsync, uintptr(to), uintptr(from), uintptr(n), s.handle).err("copying")
}

// Fill sets words of 32 bits.
func (s *Stream) Fill(to uint64, word uint32, words uint64) error {
	return callEach(s.d.lib.fillAsync, uintptr(to), uintptr(word), uintptr(words), s.handle).err("filling")
}

// Launch is a kernel with its grid and its arguments, which are one structure.
type Launch struct {
	Function *Function
	Grid     [3]uint32 // blocks
	Threads  uint32    // of a block
	Shared   uint32    // bytes of dynamic memory of a block
	Args     []byte
}

// Launch submits a kernel to a stream.
func (s *Stream) Launch(l *Launch) error {
	a := spare.Get().(*arguments)
	a.kernel = unsafe.Pointer(&l.Args[0]) // the heap refers to it: so it is no stack memory, and does not move
	r := a.call(s.d.lib.launch, l.Function.handle, uintptr(l.Grid[0]), uintptr(l.Grid[1]), uintptr(l.Grid[2]),
		uintptr(l.Threads), 1, 1, uintptr(l.Shared), s.handle, uintptr(unsafe.Pointer(&a.kernel)), 0)
	a.kernel = nil
	spare.Put(a)
	return r.err("launching a kernel")
}

// Run submits a graph to a stream.
func (s *Stream) Run(e *Exec) error {
	return callEach(s.d.lib.exec, e.handle, s.handle).err("launching a graph")
}

// Graph is a CUDA graph: nodes, and which other nodes each waits for.
type Graph struct {
	d      *Device
	handle uintptr
}

// Node is a kernel, a copy or another command of a graph.
type Node uintptr

// NewGraph makes an empty graph.
func (d *Device) NewGraph() (*Graph, error) {
	handle := new(uintptr)
	r := call(d.lib.graphCreate, uintptr(unsafe.Pointer(handle)), 0)
	return &Graph{d, *handle}, r.err("making a graph")
}

// Close destroys the graph.
func (g *Graph) Close() error { return call(g.d.lib.graphDestroy, g.handle).err("closing a graph") }

// kernelNode is CUDA_KERNEL_NODE_PARAMS, of its second version.
type kernelNode struct {
	function      uintptr
	grid, block   [3]uint32
	shared        uint32
	params, extra unsafe.Pointer
	kern, context uintptr
}

// memcpyNode is CUDA_MEMCPY3D. Of source and target only the unified address is used.
type memcpyNode struct {
	from, to             memcpyEnd
	width, height, depth uint64
}

type memcpyEnd struct {
	x, y, z, level uint64
	kind           uint32
	_              uint32
	host           uint64
	address        uint64
	array, _       uint64
	pitch, height  uint64
}

// memsetNode is CUDA_MEMSET_NODE_PARAMS.
type memsetNode struct {
	to, pitch     uint64
	value, size   uint32
	width, height uint64
}

// add calls a function that adds a node, which waits for the nodes of after.
//
//go:uintptrescapes
func (g *Graph) add(f uintptr, after []Node, args ...uintptr) (Node, error) {
	node := new(Node)
	var first *Node
	if len(after) > 0 {
		first = &after[0]
	}
	var more [2]uintptr
	copy(more[:], args)
	r := call(f, uintptr(unsafe.Pointer(node)), g.handle, uintptr(unsafe.Pointer(first)), uintptr(len(after)),
		more[0], more[1])
	return *node, r.err("recording")
}

// Kernel adds a kernel. Its arguments are copied.
func (g *Graph) Kernel(l *Launch, after []Node) (Node, error) {
	args := &[1]unsafe.Pointer{unsafe.Pointer(&l.Args[0])}
	n := &kernelNode{function: l.Function.handle, grid: l.Grid, block: [3]uint32{l.Threads, 1, 1}, shared: l.Shared,
		params: unsafe.Pointer(args)}
	node, err := g.add(g.d.lib.graphKernel, after, uintptr(unsafe.Pointer(n)))
	runtime.KeepAlive(l)
	return node, err
}

// Copy adds a copy.
func (g *Graph) Copy(to, from, n uint64, after []Node) (Node, error) {
	const unified = 4
	c := &memcpyNode{from: memcpyEnd{kind: unified, address: from, pitch: n, height: 1},
		to: memcpyEnd{kind: unified, address: to, pitch: n, height: 1}, width: n, height: 1, depth: 1}
	return g.add(g.d.lib.graphCopy, after, uintptr(unsafe.Pointer(c)), g.d.context)
}

// Fill adds a command that sets words of 32 bits.
func (g *Graph) Fill(to uint64, word uint32, words uint64, after []Node) (Node, error) {
	m := &memsetNode{to: to, pitch: 4 * words, value: word, size: 4, width: words, height: 1}
	return g.add(g.d.lib.graphFill, after, uintptr(unsafe.Pointer(m)), g.d.context)
}

// Join adds a node that does nothing, for others to wait for.
func (g *Graph) Join(after []Node) (Node, error) { return g.add(g.d.lib.graphEmpty, after) }

// Exec is an executable graph.
type Exec struct {
	d      *Device
	handle uintptr
}

// Instantiate makes an executable graph.
func (g *Graph) Instantiate() (*Exec, error) {
	handle := new(uintptr)
	r := call(g.d.lib.instantiate, uintptr(unsafe.Pointer(handle)), g.handle, 0)
	return &Exec{g.d, *handle}, r.err("making a graph ready")
}

// Close destroys the executable graph, which must not be running.
func (e *Exec) Close() error { return e.d.call(e.d.lib.execDestroy, e.handle).err("closing a graph") }

// Within calls a function with the card's context current, so that several calls share one change of it.
func (d *Device) Within(calls func() error) error {
	defer d.leave()
	if r := d.enter(); r != Success {
		return r.err("using " + d.Facts.Name)
	}
	return calls()
}
