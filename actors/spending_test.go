package actors

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/bill"
)

// What was in flight when something failed was for nothing: its time, and that until the next step is planned, went to
// the restart. What a sequence that had nothing in flight waited for stays what it was.
func TestAgain(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	flies := spending{bill: bill.Begin(began)}
	flies.begin(false)
	flies.planned(at(2))
	flies.planned(at(3))
	flies.again(at(10))
	require.Zero(t, flies.flying)
	flies.planned(at(15))
	require.Equal(t, ms(2), flies.bill.Of(bill.Queue))
	require.Equal(t, ms(13), flies.bill.Of(bill.Restart))
	require.Equal(t, ms(15), flies.bill.Sum())
	require.Equal(t, 1, flies.flying)

	rests := spending{bill: bill.Begin(began)}
	rests.begin(false)
	rests.again(at(4))
	rests.planned(at(9))
	require.Equal(t, ms(4), rests.bill.Of(bill.Queue))
	require.Equal(t, ms(5), rests.bill.Of(bill.Restart))
	require.Equal(t, ms(9), rests.bill.Sum())
}
