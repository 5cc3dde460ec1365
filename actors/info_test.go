package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

// TestWeightBytes: the size of a model is that of all its weights, of a table and a head apart from it as well.
func TestWeightBytes(t *testing.T) {
	testref.Dir(t)
	for _, name := range []string{fixture, "llama"} { // a tied head, and one of its own
		var want int64
		e := startFixture(t, name, nil)
		tied := true
		for _, tensor := range e.file.Tensors {
			want += tensor.Size
			tied = tied && tensor.Name != "output.weight"
		}
		require.Equal(t, name == fixture, tied, name)
		require.Equal(t, want, e.Info.WeightBytes, name)
	}
}
