package quant

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// row is what docs/formats.md says of a type, but for its error and what it is good for.
func row(t Type) string {
	b := t.Bounds()
	bits := float64(8*t.Bytes()) / float64(t.Block())
	return fmt.Sprintf("| %s | %g | %d in %d B | %s | %s | %s | ", t, bits, t.Block(), t.Bytes(),
		cell(b.Codes), cell(b.Scales), cell(Range{0, b.Low}))
}

func cell(r Range) string {
	if r.Min == r.Max {
		return "–"
	}
	return fmt.Sprintf("%d…%d", r.Min, r.Max)
}

// TestDocument compares docs/formats.md with the table: a row for each type that can be decoded, and no other.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/formats.md")
	require.NoError(t, err)
	documented := 0
	for _, line := range strings.Split(string(text), "\n") {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " ")
		typ, ok := Parse(name)
		if !strings.HasPrefix(line, "| ") || !ok {
			continue
		}
		require.True(t, strings.HasPrefix(line, row(typ)), "want %s", row(typ))
		documented++
	}
	for id := range formats {
		if HasCodec(Type(id)) {
			documented--
		}
	}
	require.Zero(t, documented)
}
