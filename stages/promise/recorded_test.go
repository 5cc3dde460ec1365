package promise

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/tokentrace"
)

// trafficTrace names a token trace (serve --record) of which TestTrafficOfTraces makes a file in testdata.
var trafficTrace = flag.String("traffic", "", "token trace whose requests are written to testdata/CLIENTS.traffic")

// trafficLine is a request in such a file.
const trafficLine = "client %d after %f s: prompt %d, cached %d, answer %d of %d\n"

// trafficOf takes the requests of each client out of a trace. What it does not say is how long an answer might have
// become: one that ended by the token by which most end might have become half as long again, others not.
func trafficOf(in io.Reader) (all [][]arrival, err error) {
	r, err := tokentrace.NewReader(in)
	if err != nil {
		return nil, err
	}
	type request struct {
		client, at int
		began      bool
		last       int32
	}
	requests, left, ends := map[uint64]*request{}, map[int]uint64{}, map[int32]int{}
	of := func(sequence uint64) (*request, *arrival) {
		if q := requests[sequence]; q != nil {
			return q, &all[q.client][q.at]
		}
		return &request{}, &arrival{} // it came before the trace
	}
	for {
		e, err := r.Next()
		switch x := e.(type) {
		case *tokentrace.Open:
			c := int(x.Client)
			for len(all) <= c {
				all = append(all, nil)
			}
			requests[x.Sequence] = &request{client: c, at: len(all[c])}
			all[c] = append(all[c], arrival{pause: float64(x.Time-left[c]) / 1e6, prompt: len(x.Prompt)})
		case *tokentrace.Step:
			for _, s := range x.Spans {
				if q, a := of(s.Sequence); !q.began {
					q.began, a.cached = true, s.Position
				}
			}
		case *tokentrace.Drawn:
			q, a := of(x.Sequence)
			a.answer++
			q.last = x.Token
		case *tokentrace.End:
			q, _ := of(x.Sequence)
			left[q.client] = x.Time
			ends[q.last]++
		}
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	var usual int32
	for id, n := range ends {
		if n > ends[usual] {
			usual = id
		}
	}
	for _, q := range requests {
		if a := &all[q.client][q.at]; q.last == usual {
			a.most = a.answer * 3 / 2
		} else {
			a.most = a.answer
		}
	}
	for c := range all {
		all[c] = slices.DeleteFunc(all[c], func(a arrival) bool { return a.answer == 0 })
	}
	return slices.DeleteFunc(all, func(one []arrival) bool { return len(one) == 0 }), nil
}

// A request has its client's pause, what was cached of its prompt, and its answer, whose end says whether it was cut.
// If there is a trace whose traffic is wanted, it is taken.
func TestTrafficOfTraces(t *testing.T) {
	var trace bytes.Buffer
	w, err := tokentrace.NewWriter(&trace, &tokentrace.Model{})
	require.NoError(t, err)
	step := func(sequence uint64, position, rows int) tokentrace.Event {
		return &tokentrace.Step{Spans: []tokentrace.Span{{Sequence: sequence, Position: position, Rows: rows}}}
	}
	const stop = 7
	for _, e := range []tokentrace.Event{
		&tokentrace.Drawn{Sequence: 1, Token: 3}, // it came before the trace
		&tokentrace.Open{Sequence: 2, Time: 5e5, Prompt: make([]int32, 100)}, step(2, 0, 100),
		&tokentrace.Open{Sequence: 3, Time: 6e5, Prompt: make([]int32, 9), Client: 1}, step(3, 0, 9),
		&tokentrace.Drawn{Sequence: 2, Token: 4}, &tokentrace.Drawn{Sequence: 2, Token: stop},
		&tokentrace.End{Sequence: 2, Time: 1e6}, &tokentrace.Drawn{Sequence: 3, Token: stop},
		&tokentrace.End{Sequence: 3, Time: 1e6}, &tokentrace.Open{Sequence: 4, Time: 3e6, Prompt: make([]int32, 200)},
		step(4, 64, 136), step(4, 200, 1), &tokentrace.Drawn{Sequence: 4, Token: 6}, &tokentrace.End{Sequence: 4, Time: 4e6},
		&tokentrace.Open{Sequence: 5, Time: 5e6, Prompt: make([]int32, 9), Client: 2},
		&tokentrace.End{Sequence: 5, Time: 5e6},
	} {
		require.NoError(t, w.Write(e))
	}
	all, err := trafficOf(&trace)
	require.NoError(t, err)
	require.Equal(t, [][]arrival{
		{{pause: 0.5, prompt: 100, answer: 2, most: 3}, {pause: 2, prompt: 200, cached: 64, answer: 1, most: 1}},
		{{pause: 0.6, prompt: 9, answer: 1, most: 1}},
	}, all)
	if *trafficTrace != "" {
		takeTraffic(t, *trafficTrace)
	}
}

func takeTraffic(t *testing.T, path string) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	all, err := trafficOf(f)
	require.NoError(t, err)
	var b strings.Builder
	for c, one := range all {
		for _, a := range one {
			fmt.Fprintf(&b, trafficLine, c, a.pause, a.prompt, a.cached, a.answer, a.most)
		}
	}
	require.NoError(t, os.WriteFile(fmt.Sprintf("testdata/%d.traffic", len(all)), []byte(b.String()), 0o600))
}

// recordedTraffic reads what takeTraffic wrote.
func recordedTraffic(t *testing.T, path string) (all [][]arrival, requests int) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); requests++ {
		var c int
		var a arrival
		_, err := fmt.Sscanf(in.Text()+"\n", trafficLine, &c, &a.pause, &a.prompt, &a.cached, &a.answer, &a.most)
		require.NoError(t, err, in.Text())
		if c == len(all) {
			all = append(all, nil)
		}
		all[c] = append(all[c], a)
	}
	return all, requests
}

// How far predictions are off for requests that a server recorded, of 1 to 40 clients, on a machine in virtual time:
// where three of ten are promised what they were told, and where all are.
func TestErrorsOverRecordedTraffic(t *testing.T) {
	const played = 300 // requests
	for _, clients := range []int{1, 4, 16, 40} {
		if testing.Short() && clients > 4 {
			continue
		}
		all, n := recordedTraffic(t, filepath.Join("testdata", fmt.Sprintf("%d.traffic", clients)))
		require.Len(t, all, clients)
		for i := range all {
			all[i] = slices.Repeat(all[i], played/n+1)
		}
		for _, share := range []float64{0.3, 1} {
			w := newWorld(1, slices.Clone(all))
			w.share = share
			w.run()
			t.Logf("%.1f promised, %2d clients: %3d answers, first token off by %.3f (median), %.3f (95 of 100), rate by %.3f, %.3f",
				share, clients, len(w.first), part(w.first, 0.5), part(w.first, 0.95), part(w.each, 0.5), part(w.each, 0.95))
			require.Greater(t, len(w.first), played/8)
			require.Less(t, part(w.first, 0.95), 0.15)
			require.Less(t, part(w.each, 0.95), 0.15)
		}
	}
}
