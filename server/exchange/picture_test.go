package exchange

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPicturesArePaidFor: pictures are decoded while there is memory for all of them; who waits too long is told so.
func TestPicturesArePaidFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := NewIntake(192<<20, 1<<20, 10*time.Second)
		request := func(client string) *Exchange { return &Exchange{Client: client, Context: t.Context(), intake: in} }
		large, err := request("a").Decode(1 << 40) // no more than there is
		require.NoError(t, err)
		require.EqualValues(t, pictureBytes, in.Used())
		_, err = request("b").Decode(1)
		require.ErrorIs(t, err, ErrCrowded)
		time.AfterFunc(3*time.Second, large)
		began := time.Now()
		small, err := request("b").Decode(1 << 20)
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, time.Since(began))
		beside, err := request("c").Decode(1 << 20)
		require.NoError(t, err)
		small()
		beside()
		require.Zero(t, in.Used())

		none, err := request("a").Decode(0)
		require.NoError(t, err)
		none()
		x := request("a")
		require.NoError(t, x.Bring(16<<20))
		require.EqualValues(t, 16<<20, in.Used())
		x.Release()
		time.Sleep(time.Minute)
		require.Zero(t, in.Used())
	})
}
