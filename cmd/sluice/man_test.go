package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/testref"
)

// TestManNamesAll: the page has each command once, with all of its flags, and no line that roff takes for a request by
// mistake; where groff is, it has nothing to say about the page.
func TestManNamesAll(t *testing.T) {
	o := sluice("", "man")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Equal(t, o.stdout, sluice("", "man").stdout, "the same page each time")
	parser, err := newParser(envtest.NewEnv(""), func(int) {})
	require.NoError(t, err)
	table := commandWords(parser.Model.Node)
	for _, c := range table.all()[1:] {
		_, rest, found := strings.Cut(o.stdout, "\n.SS "+roffWord(strings.Join(c.path, " "))+"\n")
		require.True(t, found, c.path)
		section, _, _ := strings.Cut(rest, "\n.SS ")
		for _, f := range c.flags {
			if f.name != "help" && f.name != "version" {
				require.Contains(t, section, `\-\-`+strings.ReplaceAll(f.name, "-", `\-`), c.path)
			}
		}
	}
	requests := map[string]bool{".TH": true, ".SH": true, ".SS": true, ".TP": true, ".B": true, ".I": true, ".PP": true,
		".EX": true, ".EE": true}
	for line := range strings.Lines(o.stdout) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(line, ".") {
			require.True(t, requests[name], line)
		}
		require.NotEqual(t, byte('\''), line[0])
	}
	require.Equal(t, `\&.x \e \-`, roff(`.x \ -`))
}

// TestManIsRoff: groff has nothing to say of the page.
func TestManIsRoff(t *testing.T) {
	c := exec.Command(testref.Tool(t, "groff", "groff"), "-man", "-Tutf8", "-ww")
	c.Stdin = strings.NewReader(sluice("", "man").stdout)
	var said strings.Builder
	c.Stderr = &said
	require.NoError(t, c.Run())
	require.Empty(t, said.String())
}
