package kvevents

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJournalForgetsTheOldest: by number and by size; a reader that fell behind sees it by the number.
func TestJournalForgetsTheOldest(t *testing.T) {
	j := newJournal(100)
	batch, at, more := j.read(0)
	require.Nil(t, batch)
	require.EqualValues(t, 100, at)
	for i := range mostBatches + 5 {
		j.add([]byte{byte(i)})
	}
	<-more
	batch, at, _ = j.read(100)
	require.EqualValues(t, 105, at, "five are gone")
	require.Equal(t, []byte{5}, batch)
	batch, at, _ = j.read(106)
	require.EqualValues(t, 106, at)
	require.Equal(t, []byte{6}, batch)
	require.EqualValues(t, 100+mostBatches+5, j.end())

	large := bytes.Repeat([]byte{1}, mostBytes/2)
	for range 3 {
		j.add(large)
	}
	_, at, _ = j.read(0)
	require.Equal(t, j.end()-2, at, "two of them are as much as is kept")
	require.Equal(t, mostBytes, j.bytes)
	j.add(bytes.Repeat([]byte{1}, 2*mostBytes))
	_, at, _ = j.read(0)
	require.Equal(t, j.end()-1, at, "the last one is always there")
	batch, at, more = j.read(j.end())
	require.Nil(t, batch)
	require.Equal(t, j.end(), at)
	select {
	case <-more:
		t.Fatal("there is no more")
	default:
	}
}
