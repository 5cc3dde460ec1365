package cluster

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWatched: an answer that is silent for long is given up, also before it begins; each byte gives it more time.
func TestWatched(t *testing.T) {
	for _, comes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := watch(t.Context())
			time.Sleep(stalled - 1)
			if comes {
				w.body = io.NopCloser(strings.NewReader("x"))
				n, err := w.Read(make([]byte, 1))
				require.Equal(t, []any{1, nil}, []any{n, err})
				time.Sleep(stalled - 1)
			}
			require.NoError(t, w.ctx.Err())
			time.Sleep(time.Second)
			require.ErrorContains(t, cause(w.ctx, io.EOF), "nothing came from it for 5s")
			require.NoError(t, w.Close())
		})
	}
	w := watch(t.Context())
	require.NoError(t, w.Close())
	require.ErrorIs(t, context.Cause(w.ctx), io.ErrClosedPipe)
}
