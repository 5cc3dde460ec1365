package answer

import (
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/wire"
)

// recordSink takes the records of an answer, from which it can be gone on with.
type recordSink interface {
	Begun(b *actors.AnswerBegun)
	Read(c *actors.AnswerCounts)
	Token(t *actors.AnswerToken)
	Ended(e *actors.AnswerEnd)
	Told(t *actors.AnswerTold)
	Closed(failed string)
}

// carriedLog has the records of an answer that are not sent yet. They go before the events that follow.
type carriedLog struct {
	actors.AnswerLog
	otherwise bool // the answer is gone on with where numbers are computed in another way
}

// carry has the records of a new answer go with its events; nil: another member could not go on with it.
func (r *run) carry() *run {
	if r.begun.Model == "" {
		return nil
	}
	r.log = &carriedLog{}
	r.records = r.log
	r.start()
	return r
}

// carryOn goes on with an answer that another member began, whose numbers may have been computed otherwise.
func (r *run) carryOn(otherwise bool) *wire.Fault {
	if r.begun.Model == "" {
		return wire.Refused(fasthttp.StatusConflict, "answer_outdated", "which weights the model has is not known here: no answer "+
			"is gone on with")
	}
	r.carry()
	if r.log.otherwise = otherwise; otherwise {
		r.x.Log.Warn().Msg("an answer of another member goes on here, where numbers are computed otherwise: its tokens may " +
			"differ from those that it would have had there")
	}
	return nil
}

// notice is told to the client of an answer that is gone on with, as a comment of its stream.
func (r *run) notice() []byte {
	if r.log == nil || !r.log.otherwise || r.lines {
		return nil
	}
	return []byte(": the member of the cluster that computed the answer has gone; it is gone on with by one that computes " +
		"otherwise\n\n")
}

// passes says that another member may do better with the answer than to tell the client of a fault.
func (r *run) passes(f *wire.Fault) bool {
	return r != nil && r.log != nil && f.Status >= fasthttp.StatusInternalServerError
}
