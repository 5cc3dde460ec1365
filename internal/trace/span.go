package trace

import "time"

// Kind is the kind of work of a span.
type Kind uint8

const (
	Message Kind = iota // a message of no other kind
	Request             // a request or its sequence begins, ends, or goes on
	Blocks              // blocks of the KV cache asked for or answered
	Step                // a step planned, computed, sampled or finished
	Token               // a token brought to its session
	Weights             // weights asked for, leased, read or packed
	Restart             // a generation begins
	Prefill             // a step on a device, from its begin to its end: one with rows of prompts
	Decode              // one in which every sequence has one row
	Embed               // segments of a step, on a device
	Mix
	FFN
	Route
	Experts
	Head
	Pool
	Block // of a network that is no text
	Idle  // a device has nothing to compute, for a cause
	Disk  // a read, from asking for it to its end
	kinds
)

// String implements fmt.Stringer.
func (k Kind) String() string {
	if k >= kinds {
		return "?"
	}
	return [kinds]string{"message", "request", "blocks", "step", "token", "weights", "restart", "prefill", "decode",
		"embed", "mix", "ffn", "route", "experts", "head", "pool", "block", "idle", "disk"}[k]
}

// ParseKind returns the kind of a name, and whether there is one.
func ParseKind(name string) (Kind, bool) {
	for k := range kinds {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// ParseCause returns the cause of a name, and whether there is one.
func ParseCause(name string) (Cause, bool) {
	for c := range Causes {
		if c.String() == name {
			return c, true
		}
	}
	return 0, false
}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Cause is the reason why a device has nothing to compute.
type Cause uint8

const (
	Unknown    Cause = iota
	NoWork           // nobody asks for anything
	Loading          // weights that must be there before the first step
	Reader           // a group of a step under way is not read yet
	Slabs            // or waits for memory to be read into
	Uploader         // or is being packed or uploaded
	Expert           // or is an expert that was not foreseen
	KV               // blocks of the KV cache
	Sampler          // a step's tokens are not drawn yet
	Mask             // or the tokens that may follow are not found yet, where a form binds an answer
	Scheduler        // the next step is not planned yet, or on its way
	Credit           // every sequence waits for its client to read
	Restarting       // an actor's restart
	OtherModel       // the turn of another model, which has yet to say what follows
	Host             // the program has yet to see a step's end, or to submit what follows
	Launch           // what was submitted is on its way to the device
	Causes
)

// String implements fmt.Stringer. The names are those of metrics and files.
func (c Cause) String() string {
	if c >= Causes {
		return "?"
	}
	return [Causes]string{"unknown", "no_work", "loading", "reader", "pool", "uploader", "expert", "kv", "sampler",
		"mask", "scheduler", "credit", "restart", "other_model", "host", "launch"}[c]
}

// MarshalText implements encoding.TextMarshaler.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Of is the subject of a span: a step, a segment or a group of weights. Nothing returns an empty one.
type Of struct {
	Step    uint64 // its number; 0: none
	Segment int    // its index in the model's program; -1: none
	Layer   int    // the segment's; -1: none
	Group   int    // of weights: its index among the model's groups; -1: none
}

// Nothing returns the subject of a span that belongs to no step and no weights.
func Nothing() Of { return Of{Segment: -1, Layer: -1, Group: -1} }

// OfStep returns a step as a subject.
func OfStep(number uint64) Of { return Of{Step: number, Segment: -1, Layer: -1, Group: -1} }

// OfSegment returns a segment of a step as a subject.
func OfSegment(step uint64, segment, layer int) Of { return Of{step, segment, layer, -1} }

// Span is a stretch of work, or of waiting for some.
type Span struct {
	Track string // who worked
	Kind  Kind
	Cause Cause // of Idle
	Of
	At   time.Duration // its begin, from the ring's origin
	Wait time.Duration // before it, since it was asked for
	Work time.Duration
}

// End returns the time at which the span ended, from the ring's origin.
func (s *Span) End() time.Duration { return s.At + s.Work }

// A span is packed into two words: step and kind; group, layer, segment and cause.

func pack(kind Kind, cause Cause, of Of) (what, where uint64) {
	return of.Step<<8 | uint64(kind),
		uint64(uint32(of.Group+1))<<40 | uint64(uint16(of.Layer+1))<<24 | uint64(uint16(of.Segment+1))<<8 | uint64(cause)
}

func unpack(what, where uint64) (Kind, Cause, Of) {
	return Kind(what & 0xff), Cause(where & 0xff), Of{
		Step: what >> 8, Segment: int(where>>8&0xffff) - 1, Layer: int(where>>24&0xffff) - 1, Group: int(where>>40) - 1,
	}
}
