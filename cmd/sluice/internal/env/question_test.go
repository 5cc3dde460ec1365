package env

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A prompt and a text beside it are both asked; the text is waited for only where somebody has put one.
func TestQuestion(t *testing.T) {
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes")
	require.NoError(t, os.WriteFile(notes, []byte("notes\n\n"), 0o600))
	asked := func(stdin string) *Env {
		return &Env{Stdin: strings.NewReader(stdin), HasText: func(io.Reader) bool { return stdin != "" }}
	}
	for _, c := range []struct {
		name, stdin  string
		words, files []string
		want         string
	}{
		{"words", "", []string{"a", "b"}, nil, "a b"},
		{"words and text", "doc\n", []string{"summarise"}, nil, "summarise\n\ndoc\n"},
		{"text alone, as it is", "\ndoc\n\n", nil, nil, "\ndoc\n\n"},
		{"file", "", []string{"q"}, []string{notes}, "q\n\nnotes\n\n"},
		{"all", "doc", []string{"q"}, []string{notes}, "q\n\nnotes\n\ndoc"},
		{"named", "", []string{"q", "-"}, nil, "q"},
		{"named by -f", "", []string{"q"}, []string{"-"}, "q"},
	} {
		got, err := asked(c.stdin).Question(c.words, c.files)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
	e := asked("doc")
	e.HasText = func(io.Reader) bool { return false }
	got, err := e.Question([]string{"q"}, nil)
	require.NoError(t, err)
	require.Equal(t, "q", got, "an idle pipe is not read")
	for _, call := range [][2][]string{{{"q", "-"}, nil}, {{"q"}, {"-"}}, {nil, nil}} {
		got, err := e.Question(call[0], call[1])
		require.NoError(t, err)
		require.Contains(t, "q\n\ndoc", got)
		require.Contains(t, got, "doc")
		e.Stdin = strings.NewReader("doc")
	}
}

// endsSoon says whether a pipe that ends while it is waited for has text.
func endsSoon() bool {
	r, w, err := os.Pipe()
	if err != nil {
		return false
	}
	defer r.Close()
	time.AfterFunc(inputWait/10, func() { w.Close() })
	return hasText(r)
}

// What standard input is decides whether it is read beside a prompt.
func TestHasText(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	began := time.Now()
	require.False(t, hasText(r), "nothing comes")
	require.GreaterOrEqual(t, time.Since(began), inputWait)
	_, err = w.WriteString("x")
	require.NoError(t, err)
	require.True(t, hasText(r))
	_, err = r.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.True(t, hasText(r), "it has ended")
	require.Eventually(t, endsSoon, time.Minute, time.Millisecond, "a busy machine may be late for once")
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	require.False(t, hasText(null))
	file, err := os.Open("question_test.go")
	require.NoError(t, err)
	defer file.Close()
	require.True(t, hasText(file))
	require.False(t, hasText(strings.NewReader("x")))
}
