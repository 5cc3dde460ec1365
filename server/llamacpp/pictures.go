package llamacpp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// pictures decodes image_data: pictures in base64, and the names of their places in the prompt, such as [img-12].
func (f fields) pictures(m *answer.Model) (names []string, all []chat.Part) {
	const name, most, want = "image_data", 64, `a list such as [{"data": "iVBORw0K...", "id": 12}]`
	raw, ok := f.Get(name)
	if !ok || raw == "null" {
		return nil, nil
	}
	if !m.Habits.Sees {
		f.off(name, "this model reads text only")
		return nil, nil
	}
	r := f.Reader(raw)
	err := r.Array(func() error {
		if len(all) == most && f.Fault == nil {
			f.Fault = wire.Invalid(name, "invalid_value", "%s has more than %d entries: want fewer", name, most)
		}
		if f.Fault != nil {
			return errExtra
		}
		p, id := chat.Part{Kind: chat.Image, At: fmt.Sprintf("%s[%d]", name, len(all))}, "0"
		err := r.Object(func(key string) (err error) {
			switch key {
			case "data":
				p.Source, err = r.String()
			case "id":
				id, err = r.Scalar()
			default:
				_, err = r.Raw()
			}
			return err
		})
		if err == nil && f.Fault == nil {
			f.Picture(&p)
		}
		names, all = append(names, fmt.Sprintf("[img-%.20s]", id)), append(all, p)
		return err
	})
	if err != nil {
		f.Broken(name, raw, err, want)
	}
	if f.Fault != nil {
		return nil, nil
	}
	return names, all
}

// placed checks that each picture has its place in a prompt.
func (f *fields) placed(names []string, texts []answer.Text) {
	for i, name := range names {
		found := slices.ContainsFunc(texts, func(t answer.Text) bool { return strings.Contains(t.Text, name) })
		if !found && f.Fault == nil {
			at := fmt.Sprintf("image_data[%d]", i)
			f.Fault = wire.Invalid(at, "invalid_value", "%s: the prompt has no place for it: want %s there", at, name)
		}
	}
}
