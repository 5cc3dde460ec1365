package cpu

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// errFault is the error of weights that cannot be read where they lie.
var errFault = errors.New("a page of the weights cannot be read: the model's file was truncated or its disk fails: " +
	"restore it and start again")

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
