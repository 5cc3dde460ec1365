package actors

import "github.com/sluice-ai/sluice/actors/run"

// Those who take part in generations: of computing, which the scheduler begins, and of loading, which the uploader
// begins.
const (
	partyKV run.Party = iota
	partyDevice
	partySampler
	partyReader
	partyPool
	partyScheduler
	partyUploader
	partyPacker
)

// restarted may say which step its sender died of.
type restarted = run.Restarted[step]
