package actors

import "github.com/sluice-ai/sluice/stages/batch"

// Bounds of the tree. Together with the edges below they bound every mailbox.
const (
	maxSessions = 256 // open requests, queued ones included; more are answered ErrBusy
	slabCount   = 12  // page-locked slabs between disk and device: some are filled while others are emptied
	packers     = 8   // goroutines that empty them, if there are as many cores
	fetchAhead  = 2   // groups that the uploader works on at once
)

// Edge is one way for messages from an actor to another. A sender holds Credits; each message costs one, and
// the receiver's answer or the end of the work it asked for gives it back. Without credit nothing is sent.
type Edge struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Carries string `json:"carries"`
	Credits int    `json:"credits"`
	Full    string `json:"full"` // what the sender does without credit
}

// Edges lists every edge of the tree. The capacity of a mailbox is the sum of the credits of the edges into it,
// so a full mailbox is a defect.
func Edges() []Edge {
	return []Edge{
		{"engine", "sessions", "open", maxSessions, "the request is refused: busy"},
		{"session", "scheduler", "submit", 2 * maxSessions, "one a request, and one when it starts again"},
		{"session", "scheduler", "cancel", 2 * maxSessions, "one a request, and one when it starts again"},
		{"stream", "scheduler", "wake", 2 * maxSessions, "one a request, sent only when it was starved"},
		{"stream", "session", "cancel", 1, "repeated cancels are one"},
		{"scheduler", "kv", "request", 2 * maxSessions, "the sequence waits for its last answer"},
		{"kv", "scheduler", "answer", 2 * maxSessions, "an answer to each request"},
		{"scheduler", "device", "step", 1, "the next step waits"},
		{"device", "sampler", "step", 1, "one a step"},
		{"sampler", "scheduler", "step", 1, "one a step"},
		{"device", "scheduler", "failed step", 1, "one a step"},
		{"device", "scheduler", "ring", controlCredits, "one a restart, and restarts are bounded"},
		{"device", "device", "computed", 1, "one a step, from the device's own threads"},
		{"scheduler", "session", "token", 2 * batch.Window, "a window; then the sequence waits until its client reads; another when it starts again"},
		{"scheduler", "session", "failure", 2, "one a sequence"},
		{"prefetcher", "uploader", "fetch", 2 * fetchAhead, "the next group waits"},
		{"uploader", "prefetcher", "resident", 2 * fetchAhead, "one a fetch"},
		{"uploader", "pool", "lease", slabCount, "the piece waits for a slab"},
		{"uploader", "pool", "release", slabCount, "one a lease"},
		{"pool", "uploader", "granted", slabCount, "one a lease"},
		{"uploader", "reader", "read", slabCount, "one a lease"},
		{"reader", "uploader", "data", slabCount, "one a read"},
		{"uploader", "packer", "pack", slabCount, "one a lease"},
		{"packer", "uploader", "packed", slabCount, "one a pack"},
		{"prefetcher", "device", "loaded", 1, "once a load; from itself where weights stay in place"},
		{"scheduler", "kv", "flush", controlCredits, "one a restart, and restarts are bounded"},
		{"scheduler", "device", "flush", controlCredits, "one a restart, and restarts are bounded"},
		{"scheduler", "sampler", "flush", controlCredits, "one a restart, and restarts are bounded"},
		{"kv, device, sampler", "scheduler", "flushed, restarted", controlCredits, "one a restart, and restarts are bounded"},
		{"sessions", "session", "restarted", controlCredits, "one a restart, and restarts are bounded"},
		{"scheduler", "sessions", "restarted", controlCredits, "one a restart, and restarts are bounded"},
		{"reader, pool, packer", "uploader", "restarted, flushed", controlCredits, "one a restart, and restarts are bounded"},
		{"uploader", "prefetcher", "restarted", controlCredits, "one a restart, and restarts are bounded"},
		{"uploader", "reader", "flush", controlCredits, "one a restart, and restarts are bounded"},
		{"uploader", "pool", "flush", controlCredits, "one a restart, and restarts are bounded"},
		{"uploader", "packer", "flush", controlCredits, "one a restart, and restarts are bounded"},
		{"any", "engine", "failed, loaded, shutdown", controlCredits, "one a restart, and restarts are bounded"},
	}
}

// controlCredits bounds what neighbours may say about restarts before the receiver gets to it: one for each
// restart that supervision allows before it gives up, for each of three neighbours.
const controlCredits = 3 * (maxRestarts + 1)

// capacity of an actor's mailbox: all credits into it, and room for a test's crash message.
func capacity(kind string) int {
	n := 1
	for _, e := range Edges() {
		if e.To == kind {
			n += e.Credits
		}
	}
	return n
}
