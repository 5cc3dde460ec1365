package cpu

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/mem"
)

// errFault is the error of weights that cannot be read where they lie.
var errFault = errors.New("a page of the weights cannot be read: the model's file was truncated or its disk fails: " +
	"restore it and start again")

// layRooms takes the memory in which workers pack strips of weights that are in place.
func (m *model) layRooms() error {
	if m.config.InPlace == nil {
		return nil
	}
	row := 0
	for i := range m.weights {
		if w := &m.weights[i]; w.matrix != nil {
			row = max(row, w.row)
		}
	}
	size := align(kernels.RoomBytes(row))
	memory, err := mem.Alloc(int64(size * len(m.workers)))
	if err != nil {
		return fmt.Errorf("strips of weights: %w", err)
	}
	m.roomMemory = memory
	for i := range m.workers {
		m.workers[i].strips = kernels.NewRoom(memory[i*size:][:size:size])
	}
	return nil
}

// guarded is runPhases where the pages of a file may be gone. The pool's workers are prepared for that anyway.
func (m *model) guarded(seg *segment) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if !isFault(r) {
				panic(r)
			}
			err = fmt.Errorf("%s: %w", seg.name, errFault)
		}
	}()
	return m.runPhases(seg)
}

// isFault says whether what was recovered, here or by a worker, is an access to memory that is not there.
func isFault(recovered any) bool {
	if w, ok := recovered.(*workerPanic); ok {
		recovered = w.value
	}
	_, ok := recovered.(interface{ Addr() uintptr })
	return ok
}
