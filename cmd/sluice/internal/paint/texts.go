package paint

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// mostRemembered is how many bytes the rows of texts may take that were read last.
const mostRemembered = 64 << 20

// texts remembers what was computed of texts: for equal salts, so that nobody learns from the time it takes what others
// have asked for.
type texts struct {
	all   []remembered // the newest one last
	bytes int
}

type remembered struct {
	key  [sha256.Size]byte
	text *paint.Text
}

func (r *remembered) bytes() int { return 4 * (len(r.text.Rows) + len(r.text.Pooled)) }

// get returns what is remembered of a text, or what compute makes.
func (t *texts) get(salt uint64, text string, compute func() (*paint.Text, error)) (*paint.Text, error) {
	r := remembered{key: sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, salt), text...))}
	at := slices.IndexFunc(t.all, func(o remembered) bool { return o.key == r.key })
	if at >= 0 {
		r = t.all[at]
		t.all = append(slices.Delete(t.all, at, at+1), r)
		return r.text, nil
	}
	var err error
	if r.text, err = compute(); err != nil {
		return nil, err
	}
	t.all = append(t.all, r)
	for t.bytes += r.bytes(); t.bytes > mostRemembered; t.all = slices.Delete(t.all, 0, 1) {
		t.bytes -= t.all[0].bytes()
	}
	return r.text, nil
}

// encoder is the model that reads texts for Z-Image, once it is open.
type encoder struct {
	parts *parts
	file  *gguf.File
	vocab *token.Vocab
}

func (e *encoder) open() (err error) {
	if e.file != nil {
		return nil
	}
	if e.file, err = namedmodel.OpenEncoder(e.parts.paths[pixels.Reader], e.parts.words[pixels.Reader]); err != nil {
		return err
	}
	if e.vocab, err = token.New(&e.file.Meta); err != nil {
		return fmt.Errorf("%s: %w", e.file.Name, err)
	}
	return nil
}

// read makes rows of a text, within the template of Z-Image.
func (e *encoder) read(r paint.Room, text string) (*paint.Text, error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	text = "<|im_start|>user\n" + text + "<|im_end|>\n<|im_start|>assistant\n"
	ids, err := e.vocab.Encode(nil, text, token.Options{ParseSpecial: true})
	if err != nil {
		return nil, fmt.Errorf("the prompt: %w", err)
	}
	if len(ids) > mostTokens {
		return nil, refusal.TooLong("the prompt has %d tokens, want at most %d", len(ids), mostTokens)
	}
	rows, err := paint.Encode(r, e.file, ids)
	return &paint.Text{Rows: rows, Width: len(rows) / len(ids)}, err
}

func (e *encoder) close() error {
	if e.file == nil {
		return nil
	}
	return e.file.Close()
}
