package chat

import (
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/internal/jsontext"
)

// Picture is a picture in a message.
type Picture struct {
	Data []byte // as it was sent: PNG, JPEG, WebP or GIF
	Mark string // its place in the message's text, once that was normalised
}

// SourceOf is where an entry of a content list has its picture, by the names that any API gives it: a URL, or base64.
func SourceOf(o *jsontext.Object) string {
	for _, name := range []string{"image_url", "source", "image", "url"} {
		switch v := o.Get(name).(type) {
		case jsontext.String:
			return string(v)
		case *jsontext.Object:
			for _, name := range []string{"url", "data"} {
				if text := v.Text(name); text != "" {
					return text
				}
			}
		}
	}
	return ""
}

// fence begins and ends the marks of pictures. It is no character: Unicode keeps it for programs' own use.
const fence = "\U0010FFFE"

// marks gives pictures their marks.
type marks struct{ n int }

func newMarks() *marks { return &marks{} }

// mark returns the part of a picture with its mark.
func (m *marks) mark(p Part) Part {
	m.n++
	return Part{Kind: Image, At: p.At, Picture: &Picture{Data: p.Picture.Data, Mark: fence + strconv.Itoa(m.n) + fence}}
}

// plain is a text without what marks are made of, so that nobody writes one.
func (m *marks) plain(text string) string {
	if m == nil {
		return text
	}
	return strings.ReplaceAll(text, fence, "")
}

// Show puts pictures into a text that no template renders, each wherever its name stands there, and returns the text
// and the pictures with their marks. Those whose names are not in the text are missing.
func Show(text string, names []string, pictures []Part) (string, []Part) {
	m := newMarks()
	var shown []Part
	var pairs []string
	text = m.plain(text)
	for i, p := range pictures {
		if strings.Contains(text, names[i]) {
			p = m.mark(p)
			shown, pairs = append(shown, p), append(pairs, names[i], p.Picture.Mark)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text), shown
}

// Piece is a part of a rendered conversation: a text, and the picture behind it.
type Piece struct {
	Text    string
	Picture *Part // nil: the text is the last one
}

// Marked cuts a rendered conversation at the marks of its pictures, in the order in which the template has them. A
// picture whose mark the template left out, or trimmed away, is not among them.
func Marked(text string, messages []Message) (all []Piece) {
	pictures := map[string]*Part{}
	for i := range messages {
		for j := range messages[i].Parts {
			if p := &messages[i].Parts[j]; p.Kind == Image && p.Picture != nil {
				pictures[p.Picture.Mark] = p
			}
		}
	}
	for len(pictures) > 0 {
		begin := strings.Index(text, fence)
		if begin < 0 {
			break
		}
		n := strings.Index(text[begin+len(fence):], fence)
		if n < 0 {
			break
		}
		end := begin + len(fence) + n + len(fence)
		all = append(all, Piece{text[:begin], pictures[text[begin:end]]})
		text = text[end:]
	}
	return append(all, Piece{Text: text})
}

// listed is the message with its content as a list.
func (m Message) listed() Message {
	parts := make([]Part, len(m.Parts))
	for i, p := range m.Parts {
		if p.Kind == Text && p.came == nil {
			o := &jsontext.Object{}
			o.Set("type", jsontext.String("text"))
			o.Set("text", jsontext.String(p.Text))
			p.came = o
		}
		parts[i] = p
	}
	m.Parts = parts
	return m
}
