package decode

import "github.com/sluice-ai/sluice/server/answer"

// Terms decodes what every API lets its clients ask of the server itself.
func (f Fields) Terms(o *answer.Order) { f.Flag("timings_causes", &o.Causes) }
