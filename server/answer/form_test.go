package answer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFormsAreChecked: what cannot be read, and what is too large to be kept, is refused before anything is generated.
func TestFormsAreChecked(t *testing.T) {
	f, err := GrammarForm(`root ::= "a" | "b"`)
	require.NoError(t, err)
	require.NotNil(t, f)
	f, err = ChoiceForm([]string{"yes", "no"})
	require.NoError(t, err)
	require.NotNil(t, f)
	_, err = GrammarForm(`root := "a"`)
	require.ErrorContains(t, err, "want ::=")
	_, err = GrammarForm(`root ::= (((("a"{200}){200}){200}){200})`)
	require.ErrorContains(t, err, "nodes")
}
