package chrome

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/trace"
)

func written(t require.TestingT, batches ...[]trace.Span) []byte {
	var out bytes.Buffer
	w := NewWriter(&out)
	for _, spans := range batches {
		require.NoError(t, w.Write(spans))
	}
	require.NoError(t, w.Close(time.Unix(1700000000, 5), 7))
	require.EqualValues(t, out.Len(), w.Size())
	return out.Bytes()
}

func spans() []trace.Span {
	return []trace.Span{
		{Track: "house/device/compute", Kind: trace.Mix, Of: trace.OfSegment(7, 3, 1), At: 1500, Wait: 250, Work: 2001},
		{Track: "house/device/compute", Kind: trace.Decode, Of: trace.OfStep(7), At: 1500, Work: 4000},
		{Track: "house/device/compute", Kind: trace.Idle, Cause: trace.Expert, Of: trace.Of{Step: 7, Segment: 5, Layer: 2, Group: 300},
			At: 5500, Work: 1},
		{Track: `a "quoted\` + "\ntrack", Kind: trace.Message, Of: trace.Nothing(), At: 0, Work: 0},
	}
}

// TestFormat judges a trace by the trace event format: an object with traceEvents; each event has a name, a phase, a
// process and a thread; complete events have a begin and a duration that is not negative, in microseconds, and begin
// in order; threads are named before their first event.
func TestFormat(t *testing.T) {
	var file struct {
		DisplayTimeUnit string
		TraceEvents     []map[string]any
		OtherData       map[string]string
	}
	d := json.NewDecoder(bytes.NewReader(written(t, spans())))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&file))
	require.Equal(t, "ns", file.DisplayTimeUnit)
	require.Equal(t, map[string]string{"version": "1", "missed": "7", "began": "2023-11-14T22:13:20.000000005Z"}, file.OtherData)
	named := map[any]bool{0.: true}
	last, complete := -1., 0
	for _, e := range file.TraceEvents {
		require.NotEmpty(t, e["name"])
		require.EqualValues(t, 1, e["pid"])
		require.IsType(t, 0., e["tid"])
		switch e["ph"] {
		case "M":
			named[e["tid"]] = true
			require.Contains(t, []any{"process_name", "thread_name"}, e["name"])
			require.NotEmpty(t, e["args"].(map[string]any)["name"])
		case "X":
			complete++
			require.True(t, named[e["tid"]], "thread %v has a name", e["tid"])
			require.NotEmpty(t, e["cat"])
			require.GreaterOrEqual(t, e["dur"], 0.)
			require.GreaterOrEqual(t, e["ts"], last)
			last = e["ts"].(float64)
		default:
			require.Fail(t, "phase", "%v", e["ph"])
		}
	}
	require.Equal(t, 4, complete)
	around := file.TraceEvents[4]
	require.Equal(t, map[string]any{"name": "decode", "cat": "decode", "ph": "X", "pid": 1., "tid": around["tid"], "ts": 1.5,
		"dur": 4., "args": map[string]any{"wait_us": 0., "step": 7.}}, around, "before what lies in it")
	require.Equal(t, "mix 1", file.TraceEvents[5]["name"])
	require.Equal(t, "idle: expert", file.TraceEvents[6]["name"])
}

// TestRoundTrip: what was written is read, to the nanosecond.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.Custom(func(t *rapid.T) trace.Span {
			index := func(name string) int { return rapid.IntRange(-1, 60000).Draw(t, name) }
			long := func(name string) time.Duration {
				return time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, name))
			}
			s := trace.Span{
				Track: rapid.String().Draw(t, "track"), Kind: trace.Kind(rapid.IntRange(0, int(trace.Disk)).Draw(t, "kind")),
				Of: trace.Of{Step: rapid.Uint64Max(1<<50).Draw(t, "step"), Segment: index("segment"), Layer: index("layer"),
					Group: index("group")},
				At: long("at"), Wait: long("wait"), Work: long("work"),
			}
			if s.Kind == trace.Idle {
				s.Cause = trace.Cause(rapid.IntRange(0, int(trace.Causes)-1).Draw(t, "cause"))
			}
			return s
		})).Draw(t, "spans")
		got, err := Read(bytes.NewReader(written(t, want))) // sorts them
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
	})
}

func TestBrokenOff(t *testing.T) {
	whole := string(written(t, spans()))
	got, err := Read(strings.NewReader(whole[:strings.LastIndex(whole, `"dur"`)]))
	require.NoError(t, err)
	require.Len(t, got, 3)
}

func TestNoTrace(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "this is no trace: EOF",
		"[]":                  "[ stands where { should",
		`{"a":[1,2]}`:         "traceEvents is missing",
		`{"traceEvents":{}}`:  "{ stands where [ should",
		`{"traceEvents":[3]}`: "event 1 of the trace",
		`{"traceEvents":[{"ph":"X","cat":"dance","name":"x"}]}`:            `"dance"`,
		`{"traceEvents":[{"ph":"X","cat":"idle","args":{"cause":"fun"}}]}`: `cause "fun"`,
		`{"traceEvents":[{"ph":"X","cat":"mix","dur":-1}]}`:                "none of this version's",
		`{"traceEvents":[{"ph":"X","cat":"mix","ts":1e300}]}`:              "none of this version's",
	} {
		_, err := Read(strings.NewReader(text))
		require.ErrorContains(t, err, want, "%s", text)
	}
	got, err := Read(strings.NewReader(`{"other":{"traceEvents":[1]},"traceEvents":[{"ph":"i","name":"other tools write more"}]}`))
	require.NoError(t, err)
	require.Empty(t, got)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestFull(t *testing.T) {
	w := NewWriter(full{})
	require.NoError(t, w.Write(spans()))
	require.ErrorContains(t, w.Flush(), "disk full")
	require.ErrorContains(t, w.Write(spans()), "disk full")
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, spans()))
	f.Add([]byte(`{"traceEvents":[{"ph":"X","cat":"idle","args":{"cause":"kv"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		again, err := Read(bytes.NewReader(written(t, got)))
		require.NoError(t, err)
		require.Len(t, again, len(got))
	})
}

func BenchmarkWrite(b *testing.B) {
	w := NewWriter(discard{})
	s := spans()[:1]
	b.ReportAllocs()
	for b.Loop() {
		_ = w.Write(s)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
