package constrain

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/sluice-ai/sluice/stages/grammar"
)

// Form is the form that an answer must have, as the request says it. The grammar that it is compiled to is large,
// and made only where it is needed.
type Form struct {
	Field string                        // field of the request that asks for the form
	Key   Key                           // equal for equal forms
	From  *Source                       // what Make reads; nil: it cannot be written down
	Make  func() (*grammar.Form, error) // compiles it, within grammar.DefaultLimits; several may do so at once
}

// Key tells forms apart.
type Key [sha256.Size]byte

// KeyOf is the key of a form that is made from these texts; the first one says how it is made.
func KeyOf(texts ...string) (key Key) {
	sum := sha256.New()
	for _, t := range texts {
		sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(t))))
		sum.Write([]byte(t))
	}
	sum.Sum(key[:0])
	return key
}
