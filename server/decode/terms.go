package decode

import (
	"time"

	"github.com/sluice-ai/sluice/server/answer"
)

// Terms decodes what every API lets its clients ask of the server itself.
func (f Fields) Terms(o *answer.Order) {
	f.Flag("timings_causes", &o.Causes)
	ms := 0
	f.Count("deadline_ms", 1, answer.MostDeadline, &ms)
	o.Deadline = time.Duration(ms) * time.Millisecond
}
