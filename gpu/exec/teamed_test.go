package exec

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// TestTeamEnd: a step ends once, when it has ended on every card, and a loss explains why others had no answer.
func TestTeamEnd(t *testing.T) {
	unanswered := errors.New("no answer")
	for _, errs := range [][]error{{unanswered, backend.ErrLost, nil}, {backend.ErrLost, unanswered, nil}} {
		told := []error{}
		e := &teamEnd{left: 3, done: func(err error) { told = append(told, err) }}
		for _, err := range errs {
			require.Empty(t, told)
			e.tell(err)
		}
		require.Equal(t, []error{backend.ErrLost}, told)
	}
}
