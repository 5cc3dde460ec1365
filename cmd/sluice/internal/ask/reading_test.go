package ask

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

// slow is a prompt of which a thousand tokens are read each second.
type slow struct{ began time.Time }

func (s slow) Reading() actors.Reading {
	return actors.Reading{Done: int(time.Since(s.began).Milliseconds()), Total: 4000}
}

// A person sees how far a long prompt is read, and nothing is left of that when the answer begins; others see nothing.
func TestWatchReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, person := range []bool{true, false} {
			e := envtest.NewEnv("")
			e.IsTerminal = func(any) bool { return person }
			e.Now = time.Now
			done := watchReading(e, slow{time.Now()})
			time.Sleep(time.Second + time.Millisecond)
			done()
			done()
			said := e.Stderr.(*bytes.Buffer).String()
			if !person {
				require.Empty(t, said)
				continue
			}
			require.Contains(t, said, "reading the prompt 25%")
			require.Contains(t, said, "1000 of 4000, 3s left")
			require.True(t, bytes.HasSuffix([]byte(said), []byte(" \r")), "%q", fmt.Sprint(said))
		}
	})
}
