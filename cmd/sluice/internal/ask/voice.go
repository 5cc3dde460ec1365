package ask

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// piece is a part of an answer.
type piece struct {
	text     string
	thinking bool // it is part of the model's thinking
}

// voice writes one answer as it comes. Thinking is dimmed on a terminal and left out elsewhere. Empty lines around
// thinking and answer are dropped.
type voice struct {
	env.Pane
	thinking bool   // of the last piece
	begun    bool   // some of it was written
	blank    string // white space at its end, written only if more follows
}

func (v *voice) say(p piece) error {
	if p.text == "" || p.thinking && !v.ANSI {
		return nil
	}
	if p.thinking != v.thinking {
		if v.begun {
			fmt.Fprint(v.W, "\n\n")
		}
		*v = voice{Pane: v.Pane, thinking: p.thinking}
	}
	text := v.blank + p.text
	if !v.begun {
		text = strings.TrimLeft(text, "\r\n")
	}
	body := strings.TrimRightFunc(text, unicode.IsSpace)
	v.blank = text[len(body):]
	if body == "" {
		return nil
	}
	v.begun = true
	if v.ANSI {
		body = strings.Map(env.Harmless, body)
	}
	if p.thinking {
		body = v.Dimmed(body)
	}
	_, err := io.WriteString(v.W, body)
	return err
}

// end ends the answer's last line.
func (v *voice) end() error {
	if !v.begun {
		return nil
	}
	_, err := io.WriteString(v.W, "\n")
	return err
}
