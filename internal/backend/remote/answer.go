package remote

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
)

// verdict begins every answer.
type verdict uint8

const (
	verdictGood    verdict = iota + 1
	verdictFault           // its text follows
	verdictWeights         // likewise: it is backend.ErrWeights
	verdictLost            // likewise: it is backend.ErrLost
	verdictLacks           // likewise: it is errors.ErrUnsupported
)

var verdicts = []struct {
	is  error
	say verdict
}{{backend.ErrLost, verdictLost}, {backend.ErrWeights, verdictWeights}, {errors.ErrUnsupported, verdictLacks}}

// mostFault is how many bytes of an error travel.
const mostFault = 4 << 10

// answered begins an answer of a kind; after an error nothing else is in it.
func answered(memory []byte, k kind, err error) []byte {
	f := frame(memory, k)
	if err == nil {
		return append(f, byte(verdictGood))
	}
	say := verdictFault
	for _, v := range verdicts {
		if errors.Is(err, v.is) {
			say = v.say
			break
		}
	}
	text := err.Error()
	return append(append(f, byte(say)), text[:min(len(text), mostFault)]...)
}

// fault reads how an answer begins.
func (b *body) fault(name string) error {
	say := verdict(b.byte())
	switch {
	case b.err != nil:
		return b.err
	case say == verdictGood:
		return nil
	}
	text := b.rest[:min(len(b.rest), mostFault)]
	for _, v := range verdicts {
		if say == v.say {
			return fmt.Errorf("%s: %s: %w", name, text, v.is)
		}
	}
	if say != verdictFault {
		return fmt.Errorf("%s: %w: an answer of kind %d", name, errGarbage, say)
	}
	return fmt.Errorf("%s: %s", name, text)
}

// end is an error if something is missing, or left.
func (b *body) end() error {
	if b.err == nil && len(b.rest) > 0 {
		b.err = fmt.Errorf("%w: %d bytes too many", errGarbage, len(b.rest))
	}
	return b.err
}
