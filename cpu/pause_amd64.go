//go:build amd64 && !purego

package cpu

// pause tells the core that this thread only waits: some 40 to 140 cycles.
//
//go:noescape
func pause()
