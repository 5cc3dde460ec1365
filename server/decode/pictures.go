package decode

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// pictures decodes the pictures of a conversation for a model that sees, and fetches those that have an address. For
// other models they stay as they are, and are refused with the conversation.
func (f Fields) pictures(messages []chat.Message, m *answer.Model) {
	if !m.Habits.Sees {
		return
	}
	for i := range messages {
		n := 0
		for j := range messages[i].Parts {
			p := &messages[i].Parts[j]
			if p.Kind == chat.Image {
				if p.At == "" {
					p.At = fmt.Sprintf("messages[%d].content[%d]", i, n)
				}
				if f.Picture(p); f.Fault != nil {
					return
				}
			}
			if p.Kind != chat.Thought {
				n++
			}
		}
	}
}

// Picture decodes the picture of a part, or fetches it.
func (f Fields) Picture(p *chat.Part) {
	data, err := f.sent(p.Source)
	if err != nil {
		f.Fault = wire.Invalid(p.At, "invalid_value", "%s: %v", p.At, err)
		return
	}
	p.Picture, p.Source = &chat.Picture{Data: data}, ""
}

// sent is the bytes of a picture that was sent as a data: URL, as base64, or by its address. Errors say nothing of what
// was sent or found, which may be a secret's.
func (f Fields) sent(source string) ([]byte, error) {
	const want = "want a data: URL such as data:image/png;base64,..., or base64"
	scheme, rest, ok := strings.Cut(source, ":")
	switch {
	case source == "":
		return nil, fmt.Errorf("there is no picture: %s", want)
	case !ok:
		rest = source
	case strings.EqualFold(scheme, "data"):
		kind, data, ok := strings.Cut(rest, ",")
		if !ok || !strings.HasSuffix(strings.ToLower(kind), ";base64") {
			return nil, fmt.Errorf("its data: URL is not in base64: %s", want)
		}
		rest = data
	case scheme == "kept" && f.kept != nil:
		return f.kept(rest)
	case !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https"):
		return nil, fmt.Errorf("the picture's address is neither data: nor http: %s", want)
	case f.fetch == nil:
		return nil, fmt.Errorf("this server does not fetch pictures (serve --fetch-images has it do so): %s", want)
	default:
		return f.fetch(source)
	}
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(rest), "="))
	if err != nil || len(data) == 0 {
		return nil, fmt.Errorf("the picture is not whole base64: %s", want)
	}
	return data, nil
}
