package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/internal/pass"
	"github.com/sluice-ai/sluice/stages/route"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRead: what conversations share is where their keys agree, whatever order a client writes its fields in.
func TestRead(t *testing.T) {
	long := strings.Repeat("a long beginning ", 100)
	a, ok := Read(1, fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, long+"x"))
	require.True(t, ok)
	require.Equal(t, "m", a.Model)
	require.InDelta(t, len(long)/tokenBytes, a.Prompt, 20)
	require.Len(t, a.Keys, (len(long)+40)/blockBytes)
	b, ok := Read(1, fmt.Sprintf(`{"max_tokens":5,"messages":[{"role":"user","content":%q}],"stream":true,"model":"m"}`, long+"y"))
	require.True(t, ok)
	require.Equal(t, a.Keys, b.Keys)
	c, _ := Read(2, fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, long+"x"))
	require.NotEqual(t, a.Keys[0], c.Keys[0], "another client")
	d, _ := Read(1, fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}],"system":"s"}`, long))
	require.NotEqual(t, a.Keys[0], d.Keys[0], "templates begin with the system prompt")
	e, _ := Read(1, fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, strings.Replace(long, "long", "LONG", 20)))
	require.NotEqual(t, a.Keys[len(a.Keys)-1], e.Keys[len(e.Keys)-1], "keys are chained")
	huge, _ := Read(1, fmt.Sprintf(`{"model":"m","prompt":%q}`, strings.Repeat(long, 1000)))
	require.Len(t, huge.Keys, mostBlocks)
	for _, body := range []string{"", "x", `{"messages":[]}`, `{"model":5}`, `[]`, `{"model":"m"`} {
		_, ok := Read(1, body)
		require.False(t, ok, body)
	}
}

// TestMemory: what was asked for lately is there, and it does not grow.
func TestMemory(t *testing.T) {
	var none *memory
	require.Equal(t, route.Sketch{}, none.sketch())
	m := &memory{}
	const all = 5*mostKeys + mostKeys/2
	for i := range all {
		m.add([]route.Key{route.Key(i) * 0x9e3779b97f4a7c15})
		require.LessOrEqual(t, len(m.now)+len(m.before), 2*mostKeys)
	}
	s, lost := m.sketch(), 0
	for i := range mostKeys {
		require.True(t, s.Has(route.Key(all-1-i)*0x9e3779b97f4a7c15))
		if !s.Has(route.Key(i) * 0x9e3779b97f4a7c15) {
			lost++
		}
	}
	require.Greater(t, lost, mostKeys*9/10)
}

func view(t *testing.T, name string, join ...string) *Cluster {
	t.Helper()
	a, err := pass.NewAuthority("town", time.Now())
	require.NoError(t, err)
	text, _, err := a.Pass(name, time.Now(), time.Hour)
	require.NoError(t, err)
	p, err := pass.Parse(text, time.Now)
	require.NoError(t, err)
	c, err := New(Options{Pass: p, Addr: "127.0.0.1:1", Join: join, Log: zerolog.Nop(),
		Offers: func() []route.Model { return []route.Model{{Name: "m", Wait: time.Second}} }})
	require.NoError(t, err)
	return c
}

// TestSilence: a member that says nothing is lost, with what waits for it; addresses that were only told of, and where
// nobody is, are forgotten, and those of the start are called on.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nowhere := "nowhere.invalid:1" // no name that is looked up
		c := view(t, "a", nowhere)
		c.http.Transport = refusing{}
		say := &Report{Version: version, Member: "b", Addr: "127.0.0.1:2", Others: []string{"127.0.0.1:3"},
			Models: []offered{{Name: "m"}}}
		require.NoError(t, c.Meet(say, "b"))
		require.Len(t, c.Members(), 4)
		goal := c.Send(&Ask{Model: "m", Prompt: 5}, nil)
		require.Equal(t, "b", goal.Member)
		require.Equal(t, "127.0.0.1:2", goal.Addr)
		require.Nil(t, c.Send(&Ask{Model: "m", Prompt: 5}, []string{"b"}))
		for range 5 {
			time.Sleep(beat)
			c.round(t.Context())
			c.calls.Wait()
			c.forget()
		}
		require.Len(t, c.Members(), 4)
		require.NoError(t, c.Meet(say, "b"))
		time.Sleep(silence)
		c.round(t.Context())
		c.calls.Wait()
		c.forget()
		require.NotNil(t, c.Send(&Ask{Model: "m", Prompt: 5}, nil))
		select {
		case <-goal.Gone:
			t.Fatal("it spoke just now")
		default:
		}
		time.Sleep(beat)
		c.round(t.Context())
		c.calls.Wait()
		c.forget()
		<-goal.Gone
		require.Nil(t, c.Send(&Ask{Model: "m", Prompt: 5}, nil))
		all := c.Members()
		require.Len(t, all, 2)
		require.Equal(t, nowhere, all[1].Addr)
		require.Contains(t, all[1].Fault, "nobody")
		require.NoError(t, c.Meet(say, "b"))
		c.Failed("127.0.0.1:2")
		c.Failed("127.0.0.1:9")
		require.Nil(t, c.Send(&Ask{Model: "m", Prompt: 5}, nil))
		other := &Report{Version: version, Member: "d", Addr: "127.0.0.1:4",
			Models: []offered{{Name: "m", Wait: time.Millisecond}}}
		require.NoError(t, c.Meet(other, "d"))
		require.Equal(t, "d", c.Send(&Ask{Model: "m", Prompt: 5}, nil).Member, "b would be sooner, if it were there")
		require.NoError(t, c.Meet(say, "b"))
		require.NotNil(t, c.Send(&Ask{Model: "m", Prompt: 5}, nil), "it is heard of again")
	})
}

// freezing is a network where one member takes what it is sent and says nothing, and others refuse.
type freezing struct{ frozen, others *atomic.Int64 }

func (f freezing) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.URL.Host == "127.0.0.1:2" {
		f.frozen.Add(1)
		<-q.Context().Done()
		return nil, q.Context().Err()
	}
	f.others.Add(1)
	return nil, errors.New("nobody is there")
}

// TestFrozen: a member that takes calls and does not answer is lost as soon as one that is silent otherwise, and holds
// up the calls of nobody else.
func TestFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, frozen, others := view(t, "a", "127.0.0.1:3"), &atomic.Int64{}, &atomic.Int64{}
		c.http.Transport = freezing{frozen, others}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var running sync.WaitGroup
		running.Go(func() { c.Run(ctx) })
		time.Sleep(beat / 2)
		require.NoError(t, c.Meet(&Report{Version: version, Member: "b", Addr: "127.0.0.1:2", Models: []offered{{Name: "m"}}}, "b"))
		goal, began := c.Send(&Ask{Model: "m", Prompt: 5}, nil), time.Now()
		require.Equal(t, "b", goal.Member)
		<-goal.Gone
		require.LessOrEqual(t, time.Since(began), silence+beat/3)
		require.EqualValues(t, 1+silence/beat, others.Load())
		require.EqualValues(t, 2, frozen.Load(), "one call at a time")
		cancel()
		running.Wait()
	})
}

// TestMost bounds members and addresses, whatever is told.
func TestMost(t *testing.T) {
	c := view(t, "a")
	for i := range 2 * mostMembers {
		name := fmt.Sprint("m", i)
		r := &Report{Version: version, Member: name, Addr: net.JoinHostPort("127.0.0.1", fmt.Sprint(1000+i))}
		for k := range mostMembers {
			r.Others = append(r.Others, fmt.Sprintf("h%d:%d", i, k+1))
		}
		_ = c.Meet(r, name) // most of them are refused
	}
	require.Len(t, c.Members(), 1+mostMembers)
	err := c.Meet(&Report{Version: version, Member: "late", Addr: "127.0.0.1:5000"}, "late")
	require.EqualError(t, err, "there are 64 members, and no more are taken")
	_, err = New(Options{Pass: c.Pass, Join: []string{"x"}})
	require.ErrorContains(t, err, `"x" is no address of a member`)
}

// refusing is a network where nobody is.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("nobody is there")
}
