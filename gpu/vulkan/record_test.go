//go:build cgo && linux

package vulkan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir/live"
)

// TestUsesMeet: what lies beside each other in rows of one buffer, as queries and values of different types do, needs
// no barrier; what lies in the same memory does, whichever buffer it belongs to.
func TestUsesMeet(t *testing.T) {
	a, b := &live.Buffer{}, &live.Buffer{}
	at := func(b *live.Buffer, from, to int, columns span) use { return use{b, span{from, to}, columns} }
	for _, c := range []struct {
		a, b  use
		meets bool
	}{
		{at(a, 0, 100, span{}), at(b, 100, 200, span{}), false},
		{at(a, 0, 101, span{}), at(b, 100, 200, span{}), true},
		{at(a, 0, 100, span{0, 10}), at(a, 0, 100, span{10, 20}), false},
		{at(a, 0, 100, span{0, 11}), at(a, 0, 100, span{10, 20}), true},
		{at(a, 0, 100, span{0, 10}), at(a, 0, 100, span{}), true},
		{at(a, 0, 100, span{0, 10}), at(b, 0, 100, span{10, 20}), true},
	} {
		require.Equal(t, c.meets, c.a.meets(c.b), "%v %v", c.a, c.b)
		require.Equal(t, c.meets, c.b.meets(c.a), "%v %v", c.b, c.a)
		require.Equal(t, c.meets, meet([]use{c.b}, []use{{}, c.a}))
	}
}
