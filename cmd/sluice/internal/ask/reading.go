package ask

import (
	"sync"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// prompted is what a prompt's progress is asked of: a stream.
type prompted interface{ Reading() actors.Reading }

// glance is how often a person is shown how far a prompt is read.
const glance = 100 * time.Millisecond

// watchReading shows a person how far a prompt is read, until done is called: before the first token.
func watchReading(e *env.Env, s prompted) (done func()) {
	if !e.IsTerminal(e.Stderr) {
		return func() {}
	}
	bar := e.Progress("reading the prompt")
	bar.Count = true
	var watching sync.WaitGroup
	stop := make(chan struct{})
	watching.Go(func() {
		defer bar.Clear()
		tick := time.NewTicker(glance)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if r := s.Reading(); r.Total > 0 && r.Done < r.Total {
					bar.From = int64(r.Cached)
					bar.Show(int64(r.Done), int64(r.Total))
				}
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		watching.Wait()
	})
}
