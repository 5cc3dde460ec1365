package driver

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRest: what is released of a held device is freed when it has come to rest; to close it does not wait longer than
// its patience, and says again how it ended to nobody.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Rest
		freed := 0
		free := func() { freed++ }
		r.Release(free)
		require.Equal(t, 1, freed)
		r.Hold()
		r.Release(free)
		require.Equal(t, 1, freed)
		ends, broken := make(chan error), errors.New("broken")
		closed := func() error {
			return r.Close("card", time.Second, func() error {
				err := <-ends
				r.Free()
				return err
			})
		}
		require.EqualError(t, closed(), "card has not come to rest within 1s: its memory stays taken until it has, or "+
			"until this program ends")
		require.Equal(t, 1, freed)
		ends <- broken
		require.ErrorIs(t, closed(), broken)
		require.Equal(t, 2, freed)
		require.NoError(t, closed())
	})
}
