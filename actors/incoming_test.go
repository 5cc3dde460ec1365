package actors

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// trickle gives one byte at a time.
type trickle struct {
	io.Reader
	closed bool
}

func (t *trickle) Read(b []byte) (int, error) {
	time.Sleep(time.Millisecond) // in a bubble
	return t.Reader.Read(b[:1])
}

func (t *trickle) Close() error {
	t.closed = true
	return nil
}

// TestIncoming: who reads gets the bytes as soon as they have come, or why they will not come.
func TestIncoming(t *testing.T) {
	data := []byte("what comes from there")
	cut := errors.New("the cable is cut")
	for name, test := range map[string]struct {
		from io.Reader
		want error // of a read of all
	}{
		"all of it": {bytes.NewReader(data), nil},
		"short":     {bytes.NewReader(data[:7]), io.ErrUnexpectedEOF},
		"cut":       {io.MultiReader(bytes.NewReader(data[:7]), iotest.ErrReader(cut)), cut},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := &trickle{Reader: test.from}
				in, err := receive(filepath.Join(t.TempDir(), "f"), from)
				require.NoError(t, err)
				got, began := make([]byte, len(data)), time.Now()
				n, err := in.ReadAt(got[:3], 2)
				require.NoError(t, err)
				require.Equal(t, data[2:5], got[:n])
				require.Less(t, time.Since(began), 6*time.Millisecond, "the rest is not waited for")
				_, err = in.ReadAt(got, 0)
				require.ErrorIs(t, err, test.want)
				if test.want == nil {
					require.Equal(t, data, got)
				}
				require.NoError(t, in.Close())
				require.True(t, from.closed)
			})
		})
	}
}
