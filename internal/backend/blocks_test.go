package backend

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// elsewhere are blocks of one class that are not in the program's memory.
type elsewhere struct{ Areas }

func (elsewhere) Parts(int, int32) ([][]byte, error) { return nil, nil }

// A block that several models have is in the program's memory if all that they have of it is.
func TestPartsOfJoined(t *testing.T) {
	areas := func(bytes ...byte) Areas { return Areas{{{Memory: bytes, Each: 1}}, {{Memory: bytes[1:], Each: 1}}} }
	for _, test := range []struct {
		name  string
		of    Joined
		class int
		want  [][]byte
	}{
		{"all", Joined{areas(1, 2, 3), areas(4, 5, 6)}, 0, [][]byte{{2}, {5}}},
		{"one is elsewhere", Joined{areas(1, 2, 3), elsewhere{areas(4, 5, 6)}}, 0, nil},
		{"one has none of the class", Joined{areas(1, 2, 3), elsewhere{areas(4, 5, 6)[:1]}}, 1, [][]byte{{3}}},
	} {
		parts, err := test.of.Parts(test.class, 1)
		require.NoError(t, err, test.name)
		require.Equal(t, test.want, parts, test.name)
	}
	_, err := Joined{areas(1, 2, 3), areas(4, 5)}.Parts(0, 2)
	require.ErrorContains(t, err, "block 2 of cache class 0, which has 2")
}
