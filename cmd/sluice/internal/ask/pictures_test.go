package ask

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func pictureFile(t *testing.T, name string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 4))))
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

func TestPasted(t *testing.T) {
	path := pictureFile(t, "a cat.PNG")
	for _, line := range []string{
		path, " " + path + "  ", "'" + path + "'", `"` + path + `"`, strings.ReplaceAll(path, " ", `\ `), "file://" + path,
	} {
		got, ok := pasted(line)
		require.True(t, ok, line)
		require.Equal(t, path, got)
	}
	text := filepath.Join(filepath.Dir(path), "a.txt")
	require.NoError(t, os.WriteFile(text, nil, 0o600))
	for _, line := range []string{"", "a cat.png", path + " what is this?", "look at " + path, text, filepath.Dir(path), "'", `"`} {
		_, ok := pasted(line)
		require.False(t, ok, line)
	}
}

// TestPastedPictures: a path alone on a line is taken after a yes, and only for a model that sees.
func TestPastedPictures(t *testing.T) {
	path := pictureFile(t, "cat.png")
	talk, screen := typed(t, &Chat{N: 4}, path, "y", "What is it?")
	talk.sees = true
	require.NoError(t, talk.run(t.Context()))
	require.Contains(t, screen.String(), "cat.png is a picture.")
	require.Contains(t, screen.String(), "it goes with the next message")
	require.Contains(t, screen.String(), "cat.png: this model reads text only", "the embedded model refuses it all the same")
	require.Empty(t, talk.pictures, "the message after that goes without")
	require.Empty(t, talk.Messages)

	talk, screen = typed(t, &Chat{N: 4}, "'"+path+"'", "no")
	talk.sees = true
	require.NoError(t, talk.run(t.Context()))
	require.Contains(t, screen.String(), "cat.png is a picture.")
	require.Empty(t, talk.pictures)
	require.Equal(t, "'"+path+"'", talk.Messages[0].Text(), "it was a message")

	talk, screen = typed(t, &Chat{N: 4}, path)
	require.NoError(t, talk.run(t.Context()))
	require.NotContains(t, screen.String(), "is a picture")
}

func TestImageFlag(t *testing.T) {
	path := pictureFile(t, "cat.png")
	f := ImageFlag{Image: []string{path, path}}
	parts, err := f.parts()
	require.NoError(t, err)
	require.Len(t, parts, 2)
	for name, want := range map[string]string{"missing.png": "missing.png", "text.png": "these 4 bytes are no picture that can be read"} {
		f.Image = []string{filepath.Join(filepath.Dir(path), name)}
		if name == "text.png" {
			require.NoError(t, os.WriteFile(f.Image[0], []byte("text"), 0o600))
		}
		_, err := f.parts()
		require.ErrorContains(t, err, want)
	}
}
