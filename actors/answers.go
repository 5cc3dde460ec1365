package actors

import (
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/storage/answerfiles"
)

// Answers writes accepted requests, and what is drawn for them, to files, so that answers outlive the process. One
// goroutine writes for all requests, and nobody waits for it: what an answer adds waits in its own log, and the
// goroutine's mailbox holds each answer once at most. Its methods may be called from any goroutine.
type Answers struct {
	folder *answerfiles.Folder
	log    zerolog.Logger
	mail   chan *Answer
	stop   chan struct{}
	done   chan struct{}
	every  time.Duration

	mu      sync.Mutex
	open    int
	failing bool // the log has it
}

// Types of what is written, for who may not import storage.
type (
	AnswerAsked  = answerfiles.Asked
	AnswerBegun  = answerfiles.Begun
	AnswerToken  = answerfiles.Token
	AnswerProb   = answerfiles.Prob
	AnswerCounts = answerfiles.Counts
	AnswerEnd    = answerfiles.End
	AnswerTold   = answerfiles.Told
	AnswerPast   = answerfiles.Past
	AnswerState  = answerfiles.State
	AnswerLog    = answerfiles.Log
)

// PackAnswer makes the file of an answer that goes on elsewhere: its request, and records that a log collected.
func PackAnswer(asked *AnswerAsked, records []byte) []byte { return answerfiles.Pack(asked, records) }

// ParseAnswer reads the file of an answer that goes on here.
func ParseAnswer(file []byte) (*AnswerPast, error) { return answerfiles.Parse(file) }

// States of an answer when nobody computes it any more.
const (
	AnswerOpen  = answerfiles.Open  // it goes on by itself when a server starts
	AnswerLeft  = answerfiles.Left  // it goes on when its client comes back
	AnswerDone  = answerfiles.Done  // it is whole
	AnswerSaved = answerfiles.Saved // it is whole, and stored
)

const (
	// writeEvery is how long records wait, so that those of many tokens and answers are written together.
	writeEvery = 100 * time.Millisecond
	// mostAnswers is how many answers are written at a time; others are computed all the same.
	mostAnswers = 1024
	// mostUnwritten is how many bytes may wait while the disk is slow; an answer that has more is not written any more.
	mostUnwritten = 4 << 20
)

var errUnwritten = errors.New("the disk is too slow: what waits to be written is too much")

// KeepAnswers starts the writer of answers to a folder; Close stops it.
func KeepAnswers(folder *answerfiles.Folder, log zerolog.Logger) *Answers {
	a := &Answers{folder: folder, log: log.With().Str("folder", folder.Path()).Logger(), every: writeEvery,
		mail: make(chan *Answer, mostAnswers), stop: make(chan struct{}), done: make(chan struct{})}
	go a.run()
	return a
}

// Close writes what waits, and ends. Answers that are computed still are written no more.
func (a *Answers) Close() {
	close(a.stop)
	<-a.done
}

func (a *Answers) run() {
	defer close(a.done)
	var due []*Answer
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	for {
		select {
		case x := <-a.mail:
			if len(due) == 0 {
				timer.Reset(a.every)
			}
			due = append(due, x)
		case <-timer.C:
			due = a.write(due)
		case <-a.stop:
			for len(a.mail) > 0 {
				due = append(due, <-a.mail)
			}
			a.write(due)
			return
		}
	}
}

// write writes what the answers have, and returns the list without them.
func (a *Answers) write(due []*Answer) []*Answer {
	for i, x := range due {
		x.write()
		due[i] = nil
	}
	return due[:0]
}

// tell logs the first failure after writing worked, and that it works again.
func (a *Answers) tell(err error) {
	for _, usual := range []error{answerfiles.ErrMissing, answerfiles.ErrChanged, fs.ErrExist} {
		if errors.Is(err, usual) { // it was deleted, or is computed for another connection
			return
		}
	}
	a.mu.Lock()
	failing := err != nil
	changed := failing != a.failing
	a.failing = failing
	a.mu.Unlock()
	switch {
	case changed && failing:
		a.log.Warn().Err(err).Msg("answers cannot be kept on disk: they go on, but do not outlive this process")
	case changed:
		a.log.Info().Msg("answers are kept on disk again")
	}
}

// Answer is the file of one answer that is being computed. A nil one keeps nothing. All methods but Left are called by
// one goroutine at a time.
type Answer struct {
	in   *Answers
	file *answerfiles.File

	mu     sync.Mutex // guards log, queued and broken
	log    answerfiles.Log
	queued bool
	broken bool // nothing more is written

	writing sync.Mutex // held while the file is written
}

// Begin writes a request before any of its answer is sent. If it cannot be written, the log says so, and nil is
// returned: the answer is not kept.
func (a *Answers) Begin(asked *AnswerAsked) *Answer {
	return a.opened(func() (*answerfiles.File, error) { return a.folder.Create(asked, now()) })
}

// Resume goes on with an answer; nil: that cannot be written.
func (a *Answers) Resume(p *AnswerPast) *Answer {
	return a.opened(func() (*answerfiles.File, error) { return a.folder.Resume(p) })
}

func (a *Answers) opened(open func() (*answerfiles.File, error)) *Answer {
	a.mu.Lock()
	full := a.open == mostAnswers
	if !full {
		a.open++
	}
	a.mu.Unlock()
	if full {
		return nil
	}
	file, err := open()
	a.tell(err)
	if err != nil {
		a.leave()
		return nil
	}
	return &Answer{in: a, file: file}
}

func (a *Answers) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
}

// Find reads an answer of an owner; nil: there is none.
func (a *Answers) Find(owner, id string) *AnswerPast {
	p, err := a.folder.Find(owner, id)
	if err != nil && !errors.Is(err, answerfiles.ErrMissing) {
		a.log.Warn().Err(err).Msg("an answer on disk cannot be read: it is as if it had not been kept")
	}
	return p
}

// Has says whether an answer of an owner is kept.
func (a *Answers) Has(owner, id string) bool { return a.folder.Has(owner, id) }

// Remove deletes an answer of an owner, and says whether there was one.
func (a *Answers) Remove(owner, id string) bool { return a.folder.Remove(owner, id) }

// Unfinished reads the answers that an earlier process was computing, and notes that they are gone on with. Those that
// so many processes went on with without drawing a token are left to their clients. One line of the log says which
// files are no answers.
func (a *Answers) Unfinished(tries int) (due []*AnswerPast) {
	all, odd := a.folder.Unfinished()
	if len(odd) > 0 {
		a.log.Warn().Err(odd[0]).Int("files", len(odd)).Msg("files in the folder of answers are ignored")
	}
	for _, p := range all {
		x := a.Resume(p)
		switch {
		case p.Closed: // it was whole when the process ended
			x.End(p.State())
		case p.Tries >= tries:
			a.log.Warn().Str("request", p.ID).Int("times", p.Tries).
				Msg("an answer is left alone: processes ended before its next token was drawn")
			x.End(AnswerLeft)
		default:
			x.add(func(l *answerfiles.Log) { l.Resumed() })
			x.End(AnswerOpen)
			due = append(due, p)
		}
	}
	return due
}

// add adds records, and has them written soon.
func (x *Answer) add(to func(*answerfiles.Log)) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken {
		return
	}
	to(&x.log)
	if x.log.Len() > mostUnwritten {
		x.fail(errUnwritten)
		return
	}
	if x.queued {
		return
	}
	select {
	case x.in.mail <- x:
		x.queued = true
	default: // many answers ended at once: the next record, or End, has these written
	}
}

// fail ends the writing. The caller holds mu.
func (x *Answer) fail(err error) {
	x.broken = true
	x.log.Take()
	x.in.tell(err)
}

// write writes what was added.
func (x *Answer) write() {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	records := x.log.Take()
	x.queued = false
	x.mu.Unlock()
	if len(records) == 0 {
		return
	}
	err := x.file.Append(records, now())
	if err == nil {
		x.in.tell(nil)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fail(err)
}

// Begun adds what the answer follows from.
func (x *Answer) Begun(b *AnswerBegun) { x.add(func(l *answerfiles.Log) { l.Begun(b) }) }

// Token adds a drawn token.
func (x *Answer) Token(t *AnswerToken) { x.add(func(l *answerfiles.Log) { l.Token(t) }) }

// Read adds the counts that a choice's client is told first.
func (x *Answer) Read(c *AnswerCounts) { x.add(func(l *answerfiles.Log) { l.Read(c) }) }

// Ended adds the end of a choice.
func (x *Answer) Ended(e *AnswerEnd) { x.add(func(l *answerfiles.Log) { l.Ended(e) }) }

// Told adds what can be asked for by the answer's id.
func (x *Answer) Told(t *AnswerTold) { x.add(func(l *answerfiles.Log) { l.Told(t) }) }

// Closed adds that the answer is whole, or why it never will be.
func (x *Answer) Closed(failed string) { x.add(func(l *answerfiles.Log) { l.Closed(failed) }) }

// End writes what waits, and closes the file in a state. It is called when nobody computes the answer any more; later
// records are dropped.
func (x *Answer) End(s AnswerState) {
	if x == nil {
		return
	}
	x.write()
	x.mu.Lock()
	x.broken = true
	x.mu.Unlock()
	if err := x.file.Close(s); err != nil {
		x.in.tell(err)
	}
	x.in.leave()
}
