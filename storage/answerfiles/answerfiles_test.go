package answerfiles

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var today = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func folder(t testing.TB, most int64) *Folder {
	f, err := OpenFolder(filepath.Join(t.TempDir(), "answers"), most, today)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

// again opens a folder as the next process does, at a time.
func again(t testing.TB, f *Folder, at time.Time) *Folder {
	f.Close()
	g, err := OpenFolder(f.path, f.most, at)
	require.NoError(t, err)
	t.Cleanup(g.Close)
	require.Equal(t, f.Used(), g.Used())
	return g
}

func request(owner, id string) *Asked {
	return &Asked{ID: id, Owner: owner, Salt: 5, Method: "POST", Path: "/v1/messages", At: 17, Body: `{"a": "` + id + "\xff\"}"}
}

func create(t testing.TB, f *Folder, owner, id string, at time.Time) *File {
	x, err := f.Create(request(owner, id), at)
	require.NoError(t, err)
	return x
}

// tokensOf draws tokens of any kind.
func tokensOf(t *rapid.T) (all []Token) {
	for range rapid.IntRange(0, 20).Draw(t, "tokens") {
		x := Token{Choice: rapid.IntRange(0, mostChoices-1).Draw(t, "choice"), ID: rapid.Int32Min(0).Draw(t, "id"),
			Drift: rapid.Float64().Draw(t, "drift"), Probs: rapid.Bool().Draw(t, "probs")}
		if x.Probs {
			x.LogProb = rapid.Float32().Draw(t, "logprob")
			for range rapid.IntRange(0, 3).Draw(t, "top") {
				x.Top = append(x.Top, Prob{rapid.Int32Min(0).Draw(t, "top id"), rapid.Float32().Draw(t, "top logprob")})
			}
		}
		all = append(all, x)
	}
	return all
}

// What was written is read, in whatever pieces it was written; a token takes some bytes.
func TestAnswersComeBack(t *testing.T) {
	f := folder(t, 1<<20)
	rapid.Check(t, func(r *rapid.T) {
		x := create(t, f, "key", "one", today)
		all := tokensOf(r)
		var log Log
		log.Begun(&Begun{Model: "m", Prompts: []string{"p"}, Seeds: []uint64{1 << 63}, Nonce: 9})
		for i := range all {
			if log.Token(&all[i]); rapid.Bool().Draw(r, "write") {
				require.NoError(t, x.Append(log.Take(), today))
			}
		}
		log.Read(&Counts{Choice: 3, Prompt: 4})
		log.Ended(&End{Counts: Counts{Choice: 3, Generated: 7, Decode: 5}, Finish: "stop", Stop: "x"})
		log.Told(&Told{Object: "{}"})
		log.Told(&Told{Object: "[]", Items: "i"})
		log.Closed("why")
		require.NoError(t, x.Append(log.Take(), today))
		require.Zero(t, log.Len())
		p, err := f.Find("key", "one")
		require.NoError(t, err)
		require.Equal(t, *request("key", "one"), p.Asked)
		require.Equal(t, &Begun{Model: "m", Prompts: []string{"p"}, Seeds: []uint64{1 << 63}, Nonce: 9}, p.Begun)
		require.Equal(t, all, p.Tokens)
		require.Equal(t, map[int]Counts{3: {Choice: 3, Prompt: 4}}, p.Read)
		require.Equal(t, "stop", p.Ended[3].Finish)
		require.Equal(t, &Told{"[]", "i"}, p.Told)
		require.True(t, p.Closed)
		require.Equal(t, "why", p.Failed)
		require.NoError(t, x.Close(Done))
	})
	var log Log
	for range 1000 {
		log.Token(&Token{ID: 9000})
	}
	require.Less(t, len(log.Take()), 4000)
}

// Another key, another id and a deleted answer are not found. Only its owner may look into the folder.
func TestAnswersAreTheirOwners(t *testing.T) {
	f := folder(t, 1<<20)
	x := create(t, f, "a", "1", today)
	for _, other := range [][2]string{{"b", "1"}, {"a", "2"}, {"a1", ""}, {"", "a1"}} {
		_, err := f.Find(other[0], other[1])
		require.ErrorIs(t, err, ErrMissing)
		require.False(t, f.Remove(other[0], other[1]))
		require.False(t, f.Has(other[0], other[1]))
	}
	if runtime.GOOS != "windows" {
		require.NoError(t, filepath.WalkDir(f.path, func(path string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := d.Info()
			require.NoError(t, err)
			require.Zero(t, info.Mode().Perm()&0o077, path)
			return nil
		}))
		_, err := OpenFolder(f.path, 1, today)
		require.ErrorIs(t, err, safefile.ErrHeld)
	}
	require.True(t, f.Remove("a", "1"))
	require.Zero(t, f.Used())
	require.ErrorIs(t, x.Append([]byte{1}, today), ErrMissing)
	require.NoError(t, x.Close(Done))
}

// An answer is found while others go on with it and end it, as a client comes back whose answer goes on for nobody.
func TestFoundWhileItEnds(t *testing.T) {
	f := folder(t, 1<<20)
	x := create(t, f, "a", "1", today)
	require.NoError(t, x.Close(Left))
	p, err := f.Find("a", "1")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 2000 {
			x, err := f.Resume(p)
			if !assert.NoError(t, err) || !assert.NoError(t, x.Close(Left)) {
				return
			}
		}
	}()
	for more := true; more; {
		select {
		case <-ended:
			more = false
		default:
		}
		_, err := f.Find("a", "1")
		require.NoError(t, err)
	}
	<-ended
}

// What a killed process left is cut at the last whole record, and gone on with from there.
func TestTornTailIsCut(t *testing.T) {
	var log Log
	log.Token(&Token{ID: 1})
	first := log.Take()
	log.Token(&Token{ID: 2})
	second := log.Take()
	for cut := range second {
		f := folder(t, 1<<20)
		x := create(t, f, "a", "1", today)
		require.NoError(t, x.Append(first, today))
		require.NoError(t, x.Append(second[:cut], today))
		f = again(t, f, today.Add(time.Hour))
		all, odd := f.Unfinished()
		require.Empty(t, odd)
		require.Len(t, all, 1)
		require.Equal(t, []Token{{ID: 1}}, all[0].Tokens)
		x, err := f.Resume(all[0])
		require.NoError(t, err)
		_, err = f.Resume(all[0])
		require.ErrorIs(t, err, fs.ErrExist, "it is computed already")
		require.NoError(t, x.Append(second, today))
		require.NoError(t, x.Close(Left))
		_, err = f.Resume(all[0])
		require.ErrorIs(t, err, ErrChanged)
		p, err := f.Find("a", "1")
		require.NoError(t, err)
		require.Equal(t, []Token{{ID: 1}, {ID: 2}}, p.Tokens)
	}
}

// Files that are broken, foreign, of a later version or moved are ignored, and said.
func TestOddFilesAreIgnored(t *testing.T) {
	for name, edit := range map[string]func(b []byte) []byte{
		"empty":         func([]byte) []byte { return nil },
		"foreign":       func([]byte) []byte { return []byte("hello, this is no answer") },
		"later version": func(b []byte) []byte { b[len(magic)]++; return b },
		"half":          func(b []byte) []byte { return b[:len(b)/2] },
		"one bit":       func(b []byte) []byte { b[len(b)-3] ^= 1; return b },
		"huge record":   func(b []byte) []byte { b[headSize+3] = 0x7f; return b },
		"of another": func([]byte) []byte {
			return appendRecord(appendHead(nil, nil), asked, appendAsked(nil, request("b", "1")))
		},
		"no request": func([]byte) []byte { return appendRecord(appendHead(nil, nil), closed, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			f := folder(t, 1<<20)
			create(t, f, "a", "1", today)
			path := f.at(keyOf("a", "1"), Open)
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, edit(b), privateFile))
			require.NoError(t, os.WriteFile(filepath.Join(f.path, "notes.txt"), nil, privateFile))
			f.used = int64(len(edit(b)))
			f = again(t, f, today)
			all, odd := f.Unfinished()
			require.Empty(t, all)
			require.Len(t, odd, 1)
			_, err = f.Find("a", "1")
			require.Error(t, err)
			create(t, f, "a", "1", today)
		})
	}
}

// Room is made by removing the oldest of who has most, and never what is being computed; age removes the rest.
func TestFolderIsBounded(t *testing.T) {
	f := folder(t, 3500)
	busy := create(t, f, "much", "0", today)
	for i, id := range []string{"1", "2", "3"} {
		x := create(t, f, "much", id, today.Add(time.Duration(i)))
		require.NoError(t, x.Append(bytes.Repeat([]byte{0}, 700), today.Add(time.Duration(i))))
		require.NoError(t, x.Close(Saved))
	}
	require.NoError(t, create(t, f, "little", "1", today.Add(-1)).Close(Done))
	require.NoError(t, busy.Append(bytes.Repeat([]byte{0}, 900), today))
	require.False(t, f.Has("much", "1"))
	require.True(t, f.Has("much", "2") && f.Has("much", "0") && f.Has("little", "1"))
	require.ErrorIs(t, busy.Append(bytes.Repeat([]byte{0}, 4000), today), ErrFull)
	require.True(t, f.Has("much", "0") && f.Has("much", "2"), "there is no room, whatever goes")
	for _, age := range []struct {
		after time.Duration
		left  []State
	}{{2 * time.Hour, []State{Open, Saved}}, {25 * time.Hour, []State{Saved}}, {31 * 24 * time.Hour, nil}} {
		f := folder(t, 1<<20)
		for _, s := range states {
			require.NoError(t, create(t, f, "a", string(s), time.Now()).Close(s))
		}
		f.Close()
		g, err := OpenFolder(f.path, f.most, time.Now().Add(age.after))
		require.NoError(t, err)
		defer g.Close()
		var left []State
		for x := range maps.Values(g.files) {
			left = append(left, x.state)
		}
		slices.Sort(left)
		require.Equal(t, age.left, left)
	}
}

// A folder that vanishes, or becomes read-only, fails writes, and nothing else.
func TestFolderVanishes(t *testing.T) {
	f := folder(t, 1<<20)
	x := create(t, f, "a", "1", today)
	require.NoError(t, os.RemoveAll(f.path))
	require.ErrorIs(t, x.Append([]byte{1}, today), fs.ErrNotExist)
	require.Error(t, x.Close(Done))
	_, err := f.Find("a", "1")
	require.ErrorIs(t, err, fs.ErrNotExist)
	create(t, f, "a", "2", today)
	require.NoError(t, os.RemoveAll(f.path))
	require.NoError(t, os.WriteFile(f.path, nil, privateFile))
	_, err = f.Create(request("a", "3"), today)
	require.Error(t, err)
	require.False(t, errors.Is(err, ErrFull))
}

// A reader never takes more than there is, and what it takes is a prefix of whole records.
func FuzzRead(f *testing.F) {
	var log Log
	log.Begun(&Begun{})
	log.Token(&Token{ID: 7, Probs: true, Top: []Prob{{1, 2}}, Drift: 1})
	log.Closed("")
	whole := append(appendRecord(appendHead(nil, nil), asked, appendAsked(nil, request("a", "1"))), log.Take()...)
	f.Add(whole)
	f.Add(whole[:len(whole)-5])
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parse(data, nil, "")
		if err != nil {
			return
		}
		require.LessOrEqual(t, p.bytes, int64(len(data)))
		require.LessOrEqual(t, len(p.Tokens), len(data))
		again, err := parse(data[:p.bytes], nil, "")
		require.NoError(t, err)
		require.Equal(t, p.bytes, again.bytes)
		require.Len(t, again.Tokens, len(p.Tokens))
	})
}

func TestNamesOfStates(t *testing.T) {
	for _, s := range states {
		require.True(t, strings.HasPrefix(string(s), "."))
		require.NotZero(t, ages[s])
	}
}

// A clock that jumps costs answers their time that nobody computes, and no others: what is computed goes on, in order,
// and what is read is what was written.
func TestClockJumps(t *testing.T) {
	const year = 365 * 24 * time.Hour
	f := folder(t, 1<<20)
	x := create(t, f, "a", "1", today)
	var log Log
	for i, jump := range []time.Duration{0, -10 * year, 10 * year, -year} {
		log.Token(&Token{ID: int32(i)})
		require.NoError(t, x.Append(log.Take(), today.Add(jump)))
		require.NoError(t, create(t, f, "a", "other", today.Add(jump)).Close(Done))
		p, err := f.Find("a", "1")
		require.NoError(t, err)
		require.Len(t, p.Tokens, i+1)
		require.EqualValues(t, i, p.Tokens[i].ID)
	}
	require.NoError(t, x.Close(Left))
	require.NoError(t, create(t, f, "a", "2", today.Add(-10*year)).Close(Done))
	require.True(t, f.Has("a", "1"), "it is from the future")
	require.NoError(t, create(t, f, "a", "3", today.Add(10*year)).Close(Done))
	require.False(t, f.Has("a", "1"))
	require.False(t, f.Has("a", "2"))
	require.True(t, f.Has("a", "3"))
}
