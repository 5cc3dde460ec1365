package decode

import "github.com/sluice-ai/sluice/server/answer"

// Slot decodes id_slot of llama-server's API, the slot that remembers the text; -1: any.
func (f Fields) Slot(m *answer.Model) int {
	id, most := -1, 0
	if m.Engine != nil {
		most = m.Engine.Info.Sequences - 1
	}
	f.Count("id_slot", -1, most, &id)
	return id
}
