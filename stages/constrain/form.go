package constrain

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/sluice-ai/sluice/stages/grammar"
)

// Form is what an answer is bound to be, as the request says it. What it is compiled to is large, and made where it is
// needed.
type Form struct {
	Field string                        // of the request
	Key   Key                           // equal for equal forms
	Make  func() (*grammar.Form, error) // takes up to what grammar.DefaultLimits say; several may make it at once
}

// Key tells forms apart.
type Key [sha256.Size]byte

// KeyOf is the key of a form that is made of these texts, the first of which says how.
func KeyOf(texts ...string) (key Key) {
	sum := sha256.New()
	for _, t := range texts {
		sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(t))))
		sum.Write([]byte(t))
	}
	sum.Sum(key[:0])
	return key
}
