package answer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFormsAreChecked: what cannot be read, and what is too large to be kept, is refused before anything is generated.
func TestFormsAreChecked(t *testing.T) {
	f, err := GrammarForm("f", `root ::= "a" | "b"`).Make()
	require.NoError(t, err)
	require.NotNil(t, f)
	f, err = ChoiceForm("f", []string{"yes", "no"}).Make()
	require.NoError(t, err)
	require.NotNil(t, f)
	_, err = GrammarForm("f", `root := "a"`).Make()
	require.ErrorContains(t, err, "want ::=")
	_, err = GrammarForm("f", `root ::= (((("a"{200}){200}){200}){200})`).Make()
	require.ErrorContains(t, err, "nodes")
}
