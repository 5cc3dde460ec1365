package ask

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/stages/chat"
)

// ImageFlag names pictures.
type ImageFlag struct {
	Image []string `name:"image" sep:"none" placeholder:"FILE" help:"Picture to show to a model that sees, before the prompt: PNG, JPEG, WebP or GIF. May be repeated."`
}

// parts reads the pictures.
func (f *ImageFlag) parts() (all []chat.Part, err error) {
	for _, path := range f.Image {
		p, err := pictureOf(path)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// pictureOf reads a picture's file.
func pictureOf(path string) (chat.Part, error) {
	data, err := compute.ReadPicture(path)
	if err != nil {
		return chat.Part{}, err
	}
	return chat.Part{Kind: chat.Image, At: filepath.Base(path), Picture: &chat.Picture{Data: data}}, nil
}

// placed puts the marks of pictures into messages, if they have any, for a model that sees; others refuse them.
func placed(engine *actors.Engine, messages []chat.Message) ([]chat.Message, error) {
	shows := func(m chat.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p chat.Part) bool { return p.Picture != nil })
	}
	if !slices.ContainsFunc(messages, shows) {
		return messages, nil
	}
	return engine.Habits().Normalise(messages, nil)
}

// kinds are the endings of pictures' files.
var kinds = []string{".png", ".jpg", ".jpeg", ".webp", ".gif"}

// pasted is the path that a line is, if it is that of a picture's file and nothing else: as terminals write what is
// dropped on them, in quotes, with blanks behind backslashes, or as a file: URL.
func pasted(line string) (path string, ok bool) {
	path = strings.TrimSpace(line)
	if n := len(path); n > 1 && (path[0] == '\'' || path[0] == '"') && path[n-1] == path[0] {
		path = path[1 : n-1]
	} else if !strings.Contains(path, `:\`) { // no path of Windows
		path = strings.ReplaceAll(path, `\ `, " ")
	}
	path = strings.TrimPrefix(path, "file://")
	if rest, home := strings.CutPrefix(path, "~/"); home {
		if dir, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(dir, rest)
		}
	}
	if !slices.Contains(kinds, strings.ToLower(filepath.Ext(path))) {
		return "", false
	}
	info, err := os.Stat(path)
	return path, err == nil && info.Mode().IsRegular()
}

// takes asks a person whether a line that is the path of a picture shall be shown to the model, and keeps the picture
// for the next message. The line was a message if it is not taken.
func (t *talk) takes(ctx context.Context, line string) (taken bool, err error) {
	if !t.patient || !t.sees || strings.Contains(line, "\n") {
		return false, nil
	}
	path, ok := pasted(line)
	if !ok {
		return false, nil
	}
	t.note("%s is a picture.", env.Printable(filepath.Base(path)))
	said, err := t.read(ctx, "Show it to the model? [y/N] ")
	if err != nil || !env.Yes(strings.NewReader(said)) {
		return false, err
	}
	p, err := pictureOf(path)
	if err != nil {
		return true, err
	}
	t.pictures = append(t.pictures, p)
	t.note("it goes with the next message")
	return true, nil
}
