package wire

import (
	"errors"
	"regexp"
	"strings"
)

// Private is an error that has another text for clients.
type Private interface {
	error
	Told() string
}

// Told returns the text of an error for clients: without the folders of files, and with what a Private error in it has
// for them. The log has the error itself.
func Told(err error) string {
	text := err.Error()
	var p Private
	if errors.As(err, &p) {
		text = strings.Replace(text, p.Error(), p.Told(), 1)
	}
	text = spaced.ReplaceAllString(text, "$1$2")
	text = absolute.ReplaceAllString(text, "$1")
	return relative.ReplaceAllString(text, "$1$2")
}

// absolute matches the folders of an absolute path; relative, those of any path to a file of a model; spaced, those of
// an absolute path to one, which may have blanks in their names.
var (
	absolute = regexp.MustCompile(`(^|[\s"'(=])/(?:[^\s/:"']+/)+`)
	relative = regexp.MustCompile(`(^|[\s"'(=])(?:[^\s/:"']+/)+` + modelFile)
	spaced   = regexp.MustCompile(`(^|[\s"'(=])/(?:[^\s/:"']+(?: [^\s/:"']+)*/)+` + modelFile)
)

const modelFile = `([^\s/:"']+\.(?:gguf|safetensors|json))`
