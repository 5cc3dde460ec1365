package ask

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/safefile"
)

// besideTalk is the file beside a conversation's that has what was computed of it. It is a file of --session.
func besideTalk(path string) string { return path + ".session" }

// remembers has the engine know the conversation's tokens, so that what was computed of them can be written.
func (d *dialogue) remembers() {
	if d.keeps.slot == nil {
		d.keeps.slot = &actors.Slot{}
	}
}

// keepBeside writes what was computed of a conversation beside its file, which was written, and says so. Without it the
// conversation is read again: no error ends the talk.
func (d *dialogue) keepBeside(path string, replace bool) string {
	d.remembers()
	m, err := d.writeSession(besideTalk(path), replace)
	if err != nil {
		return fmt.Sprintf("; what was computed is not: %s: %v", besideTalk(path), err)
	}
	return ofTokens(m.Tokens)
}

// findBeside has the engine go on from what was computed of a conversation, if it is beside its file, and says so.
func (d *dialogue) findBeside(path string) string {
	d.remembers()
	from, info, err := safefile.Open(besideTalk(path))
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	var m actors.Moved
	if err == nil {
		defer from.Close()
		var file *actors.SessionFile
		if file, err = actors.ReadSession(from, info.Size(), d.keeps.key); err == nil {
			m, err = d.engine.RestoreText(*d.keeps.slot, file)
		}
	}
	if err != nil {
		return fmt.Sprintf("; what was computed is not used: %s: %v", besideTalk(path), err)
	}
	return ofTokens(m.Tokens)
}

// ofTokens says of how many tokens there is what was computed; whole blocks of them are kept, so there may be none.
func ofTokens(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", and what was computed of %d tokens", n)
}
