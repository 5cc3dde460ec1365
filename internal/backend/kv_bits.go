package backend

import "github.com/sluice-ai/sluice/internal/ir"

// KVShare is the memory and the number of values that full blocks keep of K, or of V, for all layers of a program:
// without what a device may add for its layout, and without the blocks that rows are stored in until they are sealed.
type KVShare struct {
	Bytes  float64 // of a position
	Values int     // of a position
}

// Bits is how many bits a value takes, scales and all; 0 where nothing is kept.
func (s KVShare) Bits() float64 {
	if s.Values == 0 {
		return 0
	}
	return 8 * s.Bytes / float64(s.Values)
}

// Shares returns what is kept of K and of V of a program.
func (kv KV) Shares(p *ir.Program) (k, v KVShare) {
	for i, l := range p.KV {
		f := kv.of(p, i)
		k.add(l.KVHeads, f.K.Kept(), l.KDim)
		v.add(l.KVHeads, f.V.Kept(), l.VDim)
	}
	return k, v
}

func (s *KVShare) add(heads int, f Form, features int) {
	s.Bytes += float64(heads*f.Bytes(features)) / BlockSize
	s.Values += heads * features
}
