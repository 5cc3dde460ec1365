package run

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/trace"
)

// heard collects the user messages that a mailbox hands over.
type heard struct{ messages chan any }

func (h heard) InvokeUserMessage(m any)    { h.messages <- m }
func (heard) InvokeSystemMessage(any)      {}
func (heard) EscalateFailure(_ any, _ any) {}

// TestMailboxBeforeStart: protoactor makes an actor known by its name before it gives the mailbox its handlers.
func TestMailboxBeforeStart(t *testing.T) {
	m := newMailbox(roomFor(4), &load{track: trace.New(1, now()).Track("a")})
	posted := make(chan struct{})
	go func() {
		m.PostUserMessage("early")
		close(posted)
	}()
	h := heard{make(chan any, 1)}
	m.RegisterHandlers(h, actor.NewDefaultDispatcher(1))
	<-posted
	require.Empty(t, h.messages)
	m.Start()
	require.Equal(t, "early", <-h.messages)
}
