package actors

import (
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/reply"
)

// Reread makes events of tokens that were drawn before. One goroutine uses it.
type Reread struct {
	asked asked
	seq   batch.Seq
	read  reply.Reader
	n     int
}

// Reread returns what makes the events of a prepared request's answer from its tokens, as its stream had them.
func (e *Engine) Reread(r Request) (*Reread, error) {
	if r.Stop == nil {
		r.Stop = e.spec.settings.Stop
	}
	x := &Reread{asked: asked{Request: r}}
	if err := x.asked.encode(e.spec, nil); err != nil {
		return nil, err
	}
	x.seq.Terms, x.seq.Tokens = &x.asked.terms, x.asked.prompt.Tokens
	x.read = e.spec.reader(&x.asked)
	return x, nil
}

// Token makes the event of the next token. Its log-probabilities are the caller's to add.
func (x *Reread) Token(id int32, e *Event) {
	end := x.seq.Ended(x.n, id)
	x.n++
	stopped := x.read.Push(id, end)
	*e = Event{Text: append(e.Text[:0], x.read.Text...), Parts: append(e.Parts[:0], x.read.Parts...), HasToken: true,
		Token: id, Finish: finishOf(end, stopped), Stop: x.read.Stops.Found()}
}

// Content tells the model's weights from others, in few bytes: by the sizes and times of its files.
func (e *Engine) Content() string {
	file, b := e.spec.file, strings.Builder{}
	for i := range file.Parts() {
		part := file.Part(i)
		fmt.Fprintf(&b, "%d", part.Size)
		if part.Info != nil {
			fmt.Fprintf(&b, "@%x", part.Info.ModTime().UnixNano())
		}
		b.WriteByte(' ')
	}
	return fmt.Sprintf("%s%d tensors", b.String(), len(file.Tensors))
}
