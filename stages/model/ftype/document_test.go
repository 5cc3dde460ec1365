package ftype

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocument: docs/formats.md names those types of tensors that no file type is named after, and no other.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/formats.md")
	require.NoError(t, err)
	own, _, found := strings.Cut(string(text), "\n## Folders that other tools packed")
	require.True(t, found)
	var without []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-Z0-9_]+) \|`).FindAllStringSubmatch(own, -1) {
		named := func(name string) bool { return name == row[1] || strings.HasPrefix(name, row[1]+"_") }
		if !slices.ContainsFunc(Names(), named) {
			without = append(without, row[1])
		}
	}
	slices.Sort(without)
	require.Equal(t, []string{"NVFP4", "Q1_0", "Q2_0"}, without)
	require.Contains(t, strings.ReplaceAll(own, "\n", " "), "NVFP4, Q1_0 and Q2_0 are types of tensors only")
}
