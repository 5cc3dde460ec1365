package answer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
)

// Only where the operator wants it does a deadline get ahead of other clients: any of them may ask for one.
func TestDeadlinesGetAheadIfWanted(t *testing.T) {
	for _, test := range []struct {
		wanted   bool
		deadline time.Duration
		ahead    bool
	}{{false, time.Second, false}, {true, 0, false}, {true, time.Second, true}} {
		o := &Order{Deadline: test.deadline, Prompts: make([]actors.Request, 2)}
		(&Service{Promises: test.wanted}).mark(o)
		for i := range o.Prompts {
			require.Equal(t, test.ahead, o.Prompts[i].Promised)
		}
	}
}
