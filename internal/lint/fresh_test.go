package lint

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// generate matches the one form of directive that is allowed, so that a test can send the output elsewhere:
// a program in a folder (-C) of its own that writes all its files into the folder it is given (-o).
var generate = regexp.MustCompile(`(?m)^//go:generate go run -C (\S+) \. -o (\S+)$`)

// TestGeneratedFilesAreFresh runs every generator and compares. `make gen` mends what it finds.
func TestGeneratedFilesAreFresh(t *testing.T) {
	made := map[string]bool{}
	for _, s := range sources(t) {
		directives := generate.FindAllStringSubmatch(s.text, -1)
		require.Len(t, directives, strings.Count(s.text, "\n//go:"+"generate "),
			"%s: want //go:"+"generate go run -C FOLDER . -o FOLDER", s.path)
		for _, d := range directives {
			for _, name := range compare(t, path.Join(s.dir(), d[1]), d[2]) {
				made[name] = true
			}
		}
	}
	for name, text := range texts(t, ".go", ".s") {
		head, _, _ := strings.Cut(text, "\n")
		if strings.HasPrefix(head, "// Code generated ") && !made[name] {
			t.Errorf("%s: says that it is generated, but no //go:"+"generate makes it", name)
		}
	}
}

// compare runs the generator of a folder, letting it write elsewhere, and returns the module's files that it makes.
func compare(t *testing.T, generator, out string) (made []string) {
	t.Helper()
	tmp := t.TempDir()
	cmd := exec.Command("go", "run", ".", "-o", tmp)
	cmd.Dir = filepath.Join(root, generator)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", generator, text)

	files, err := filepath.Glob(filepath.Join(tmp, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "%s wrote nothing", generator)
	for _, f := range files {
		name := path.Join(generator, out, filepath.Base(f))
		want, err := os.ReadFile(f)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err, "run make gen")
		if string(got) != string(want) {
			t.Errorf("%s: is not what its generator writes: run make gen", name)
		}
		made = append(made, name)
	}
	return made
}
