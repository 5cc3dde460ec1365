package bill

import "time"

// Cause is what a stretch of a request's time went to.
type Cause uint8

// The causes. Those from Compute on are counted apart until the first token (prefill), and from there on (decode).
const (
	Receive  Cause = iota // the body arrived, and was decoded
	Load                  // the model was loaded, or its weights came
	Queue                 // for a place in the server, in the model, or among the sequences that run
	Tokenize              // the template was rendered, and its text made tokens
	Pictures              // what the prompt shows was looked at by the model's tower
	Grammar               // a form was compiled, or the tokens that it allows were found
	Sampling              // tokens were drawn
	Write                 // its client had not read what was there, or the end was on its way to the client
	Restart               // something failed, and was done again
	Compute               // steps with rows of it, as far as they would have taken that long for these alone
	Weights               // for weights, or copies of them
	Others                // rows of others in its steps, and steps of others
	Room                  // for blocks of the KV cache: their room, or their content
	Draft                 // for guesses of a draft model
	Host                  // the program between steps
	Causes
)

// String implements fmt.Stringer. The names are those of answers.
func (c Cause) String() string {
	return [Causes]string{"receive", "load", "queue", "tokenize", "pictures", "grammar", "sampling", "write", "restart",
		"compute", "weights", "others", "kv", "draft", "host"}[c]
}

// phased is how many causes are counted by phase.
const phased = Causes - Compute

// Bill is a request's time so far. It is a value: a copy goes on by itself. The zero Bill counts nothing.
type Bill struct {
	began   time.Time
	at      time.Duration // since then, up to which time was given to causes
	decodes bool
	spent   [Causes + phased]time.Duration
}

// Begin returns the account of a request that came at a time.
func Begin(at time.Time) Bill { return Bill{began: at} }

// Begun says whether the account counts.
func (b *Bill) Begun() bool { return !b.began.IsZero() }

// Began is when the request came.
func (b *Bill) Began() time.Time { return b.began }

// Decodes says that the request has its first token: what follows is counted as decode.
func (b *Bill) Decodes() { b.decodes = true }

// Until moves on, and gives the time since the last move to a cause. A time before that changes nothing.
func (b *Bill) Until(at time.Time, c Cause) { b.give(c, b.move(at)) }

// move moves on, and returns the time to be given to causes, all of it.
func (b *Bill) move(at time.Time) time.Duration {
	if !b.Begun() {
		return 0
	}
	d := max(at.Sub(b.began)-b.at, 0)
	b.at += d
	return d
}

func (b *Bill) give(c Cause, d time.Duration) {
	if b.decodes && c >= Compute {
		c += phased
	}
	b.spent[c] += d
}

// Pass is what is known of a step, beside when it ended: how long it waited for weights and for the program, what
// rows it had, how many of these were the request's, and how many rows would have taken as long as what does not
// depend on rows.
type Pass struct {
	Weights, Host    time.Duration
	Own, Rows, Fixed int
}

// Computed moves on to the end of a step that had rows of the request. What the step did not wait for is divided: the
// rows of others have their share of it, and no share of what does not depend on rows.
func (b *Bill) Computed(at time.Time, s *Pass) {
	left := b.move(at)
	part := func(c Cause, d time.Duration) {
		d = max(min(d, left), 0)
		b.give(c, d)
		left -= d
	}
	part(Weights, s.Weights)
	part(Host, s.Host)
	if all := s.Fixed + s.Rows; s.Own < s.Rows && all > 0 {
		part(Others, time.Duration(float64(left)*float64(s.Rows-s.Own)/float64(all)))
	}
	part(Compute, left)
}

// Sampled moves on to the end of the drawing of tokens, of which the request had a share.
func (b *Bill) Sampled(at time.Time, own, all int, c Cause) {
	d := b.move(at)
	others := time.Duration(0)
	if own < all {
		others = time.Duration(float64(d) * float64(all-own) / float64(all))
	}
	b.give(Others, others)
	b.give(c, d-others)
}

// Sum is the time that was given to causes.
func (b *Bill) Sum() (sum time.Duration) {
	for _, d := range b.spent {
		sum += d
	}
	return sum
}

// Spent is the time that went to a cause: of those that are counted by phase, until the first token.
func (b *Bill) Spent(c Cause) time.Duration { return b.spent[c] }

// Of is the time that went to a cause, in both phases.
func (b *Bill) Of(c Cause) time.Duration {
	if c >= Compute {
		return b.spent[c] + b.spent[c+phased]
	}
	return b.spent[c]
}

// Decoding is the time that went to a cause that is counted by phase, from the first token on.
func (b *Bill) Decoding(c Cause) time.Duration { return b.spent[c+phased] }
