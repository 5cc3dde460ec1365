package actors

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/reply"
	"github.com/sluice-ai/sluice/storage/gguf"
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

// Content tells what a prepared request is computed with from other things, in few bytes: the files of weights and
// tower by sizes and times, pictures and adapters by their digests. Adapters are loaded for it.
func (e *Engine) Content(r *Request) (string, error) {
	var b strings.Builder
	describe(&b, e.spec.file)
	if e.spec.eye != nil {
		describe(&b, e.spec.eye.file)
	}
	if r.prompt != nil {
		for i := range r.prompt.shown {
			fmt.Fprintf(&b, " picture %x", r.prompt.shown[i].Hash[:8])
		}
	}
	err := e.describeAdapters(&b, r)
	return b.String(), err
}

// Anywhere tells what Content does, but alike on all machines that have the same files; "" if that is not known, as of
// towers and their pictures. numbers is the same where they are computed in the same way: there, and perhaps elsewhere,
// the same tokens are drawn.
func (e *Engine) Anywhere(r *Request) (content, numbers string, err error) {
	if e.spec.kept.Content == "" || r.prompt != nil && len(r.prompt.shown) > 0 {
		return "", "", nil
	}
	var b strings.Builder
	b.WriteString(e.spec.kept.Content)
	if err := e.describeAdapters(&b, r); err != nil {
		return "", "", err
	}
	sum := sha256.New()
	for _, t := range e.spec.traits(e.house.device) {
		if t.Name != "model" { // which is another's if the file is written anew
			fmt.Fprintf(sum, "%s: %s\n", t.Name, t.Value)
		}
	}
	return b.String(), hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

func (e *Engine) describeAdapters(b *strings.Builder, r *Request) error {
	steps, salt, done, err := e.spec.adapters.adapt(r.Adapters, 0)
	if err != nil {
		return err
	}
	done()
	if len(steps) > 0 {
		fmt.Fprintf(b, " adapters %x", salt)
	}
	return nil
}

// Traits are what the bits of the model's numbers depend on beside the tokens, as a token trace has them.
func (e *Engine) Traits() (all []tokentrace.Trait) {
	for _, t := range e.spec.traits(e.house.device) {
		all = append(all, tokentrace.Trait(t))
	}
	return all
}

// describe writes the sizes and times of a file's parts.
func describe(b *strings.Builder, file *gguf.File) {
	for i := range file.Parts() {
		part := file.Part(i)
		fmt.Fprintf(b, "%d", part.Size)
		if part.Info != nil {
			fmt.Fprintf(b, "@%x", part.Info.ModTime().UnixNano())
		}
		b.WriteByte(' ')
	}
	fmt.Fprintf(b, "%d tensors", len(file.Tensors))
}
