package grammar

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFormIsShared: programs of one form work at the same time, each as if it were alone, and cost little beside it.
func TestFormIsShared(t *testing.T) {
	g, err := GBNF(`root ::= "a"{0,9000} ("b" | [c-z]+)`)
	require.NoError(t, err)
	f, err := Compile(g, DefaultLimits())
	require.NoError(t, err)
	require.Greater(t, f.Size(), int64(18_000*48))
	trie := NewTrie(3, func(id int32) []byte { return []byte(`abz`)[id : id+1] }, nil)
	read := func(n int) (uint64, error) {
		p, mask := f.Program(), make([]uint64, 1)
		m, k := p.Matcher(), p.Masker(trie)
		if got, err := m.Read([]byte(strings.Repeat("a", n))); got != n || err != nil {
			return 0, fmt.Errorf("read %d of %d: %w", got, n, err)
		}
		err := k.Mask(m, mask)
		return mask[0], err
	}
	ended := make(chan error)
	for i := range 4 {
		go func() {
			mask, err := read(8997 + i)
			if want := uint64(0b111); err == nil && (i < 3 && mask != want || i == 3 && mask != want&^1) {
				err = fmt.Errorf("mask %b behind %d", mask, 8997+i)
			}
			ended <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-ended)
	}
	require.Less(t, testing.AllocsPerRun(10, func() { f.Program() }), 50.0)
}
