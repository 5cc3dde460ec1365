// Package exec is a backend.Device over a gpu/driver: the memory of models, weights in slots, the ring of steps,
// recordings of what gpu/plan planned, their submission, and the account of when the device did what.
//
// It knows no API. Files, bottom up: queue.go and reader.go (the driver's queues, and its timestamps, in bounded time),
// clock.go and shares.go (timestamps as times), memory.go and staging.go, card.go (an opened device with what its
// models share), weights.go, lay.go, upload.go and slots.go (where weights lie, and how they come there), ring.go and
// fill.go (steps as kernels read them), record.go, experts.go, parts.go and submissions.go (what is submitted when),
// times.go (accounts), border.go (values between devices), mates.go (what a model shares with other cards'),
// model.go, warm.go, device.go; teamed.go and team.go (several cards as one device); probe.go and ceiling.go measure.
package exec
