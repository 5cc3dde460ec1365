package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

// parse makes a member of a line: its name, then words: drained, full, wait=, load=, each= (milliseconds), knows=
// (letters, a block each, a prompt's from the first one on), model=.
func parse(t *testing.T, line string) Member {
	words := strings.Fields(line)
	m := Member{Name: words[0], Models: []Model{{Name: "m", Token: ms, Each: 10 * ms}}}
	at := &m.Models[0]
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		n := 0
		if key == "wait" || key == "load" || key == "each" {
			_, err := fmt.Sscan(value, &n)
			require.NoError(t, err)
		}
		switch d := time.Duration(n) * ms; key {
		case "drained":
			m.Drained = true
		case "full":
			m.Full = true
		case "wait":
			at.Wait = d
		case "load":
			at.Load = d
		case "each":
			at.Each = d
		case "knows":
			at.Known = SketchOf(letters(value))
		case "model":
			at.Name = value
		default:
			t.Fatalf("%q is no word", w)
		}
	}
	return m
}

// letters are keys of a prompt whose blocks have these letters.
func letters(s string) (keys []Key) {
	k := Key(1)
	for _, l := range s {
		k = (k + Key(l)) * 0x9e3779b97f4a7c15
		k ^= k >> 32
		keys = append(keys, k)
	}
	return keys
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name, members string
		r             Request
		want          string
	}{
		{"the longest prefix", "a knows=x; b knows=xyz; c knows=xy", Request{}, "b 192 in 58ms"},
		{"the last token is read", "a; b knows=xyz", Request{Prompt: 192}, "b 191 in 1ms"},
		{"what is known lies at the start", "a knows=x wait=1; b", Request{Keys: letters("yx")}, "b 0 in 250ms"},
		{"a short queue is worth a prefix", "a knows=xyz wait=570; b", Request{}, "a 192 in 628ms"},
		{"a long queue is not", "a knows=xyz wait=580; b", Request{}, "b 0 in 250ms"},
		{"the shorter queue", "a wait=20; b wait=10; c wait=30", Request{}, "b 0 in 260ms"},
		{"loaded before loading", "a load=5000; b wait=4000", Request{}, "b 0 in 4.25s"},
		{"loading before a long queue", "a load=5000; b wait=6000", Request{}, "a 0 in 5.25s"},
		{"fewer answers beside", "a each=20; b each=10", Request{Answer: 100}, "b 0 in 250ms"},
		{"an answer outweighs a prefix", "a each=20 knows=x; b each=10", Request{Answer: 100}, "b 0 in 250ms"},
		{"drained", "a drained knows=xyz; b", Request{}, "b 0 in 250ms"},
		{"full", "a full knows=xyz; b wait=9", Request{}, "b 0 in 259ms"},
		{"failed already", "a knows=xyz; b", Request{Not: []string{"a"}}, "b 0 in 250ms"},
		{"another model", "a model=o knows=xyz; b", Request{}, "b 0 in 250ms"},
		{"a prompt of less than a block", "a wait=1; b", Request{Keys: []Key{}, Prompt: 10}, "b 0 in 10ms"},
		{"nobody has it", "a model=o; b model=n; c model=o", Request{}, `no member of the cluster has the model "m": they have n, o`},
		{"nobody has any", "", Request{}, `no member of the cluster has the model "m", nor any other: start one that has it`},
		{"all drained", "a drained; b drained full; c model=o", Request{},
			`all members with the model "m" are drained: start another one`},
		{"all busy", "a drained; b full; c", Request{Not: []string{"c"}},
			`all members with the model "m" have as many requests as they take: try again later`},
		{"all failed", "a drained; b; c", Request{Not: []string{"c", "b", "z"}},
			`no member is left that could answer with the model "m": b, c failed`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var members []Member
			for line := range strings.SplitSeq(c.members, ";") {
				if strings.TrimSpace(line) != "" {
					members = append(members, parse(t, line))
				}
			}
			c.r.Model, c.r.Block = "m", 64
			if c.r.Keys == nil {
				c.r.Keys = letters("xyz")
			}
			if c.r.Prompt == 0 {
				c.r.Prompt = 250
			}
			for range 2 { // their order does not matter
				got, err := Choose(members, &c.r)
				said := fmt.Sprintf("%s %d in %v", got.Member, got.Cached, got.First)
				if err != nil {
					said = err.Error()
				}
				require.Equal(t, c.want, said)
				slices.Reverse(members)
			}
		})
	}
}

// Prompts that begin alike meet at one of equal members, and other beginnings at others.
func TestAffinity(t *testing.T) {
	members := []Member{parse(t, "a"), parse(t, "b"), parse(t, "c")}
	where := map[string]int{}
	for i := range 300 {
		keys := letters(string(rune('A'+i)) + "x")
		r := Request{Model: "m", Block: 64, Prompt: 200, Keys: keys}
		first, err := Choose(members, &r)
		require.NoError(t, err)
		where[first.Member]++
		r.Keys = append(keys[:1:1], 99)
		again, err := Choose(members, &r)
		require.NoError(t, err)
		require.Equal(t, first.Member, again.Member)
	}
	for _, m := range members {
		require.InDelta(t, 100, where[m.Name], 30, "%v", where)
	}
}

// drawn draws members that may all be unfit.
var drawn = rapid.Custom(func(t *rapid.T) []Member {
	var members []Member
	for i := range rapid.IntRange(0, 6).Draw(t, "members") {
		m := Member{Name: fmt.Sprint("m", i), Drained: rapid.IntRange(0, 3).Draw(t, "drained") == 0,
			Full: rapid.IntRange(0, 3).Draw(t, "full") == 0}
		for _, name := range []string{"a", "b"} {
			if rapid.Bool().Draw(t, "has") {
				duration := func(most int) time.Duration { return time.Duration(rapid.IntRange(0, most).Draw(t, "ms")) * ms }
				m.Models = append(m.Models, Model{Name: name, Load: duration(2) * 1000, Wait: duration(500), Token: duration(3),
					Each: duration(20), Known: SketchOf(letters("xyzu")[:rapid.IntRange(0, 4).Draw(t, "known")])})
			}
		}
		members = append(members, m)
	}
	return members
})

func request(t *rapid.T) *Request {
	r := &Request{Model: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "model"), Block: 64,
		Answer: rapid.IntRange(0, 200).Draw(t, "answer"), Not: rapid.SliceOf(rapid.SampledFrom([]string{"m0", "m1"})).Draw(t, "not")}
	r.Keys = letters("xyzu")[:rapid.IntRange(0, 4).Draw(t, "blocks")]
	r.Prompt = 64*len(r.Keys) + rapid.IntRange(1, 63).Draw(t, "rest")
	return r
}

// fit says whether a member may get a request, as one would put it in a sentence.
func fit(m *Member, r *Request) bool {
	knows := false
	for i := range m.Models {
		knows = knows || m.Models[i].Name == r.Model
	}
	failed := false
	for _, name := range r.Not {
		failed = failed || name == m.Name
	}
	return knows && !failed && !m.Drained && !m.Full
}

// Whoever is chosen may get the request, somebody is whenever anybody may, and no order of members, and no member that
// may not, has a say in it. A member at which less is to be done is not passed over for it.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, r := drawn.Draw(t, "cluster"), request(t)
		c, err := Choose(members, r)
		var may []Member
		for i := range members {
			if fit(&members[i], r) {
				may = append(may, members[i])
			}
		}
		if len(may) == 0 {
			var refusal *Nowhere
			if !errors.As(err, &refusal) || refusal.Reason == 0 {
				t.Fatalf("nobody may have it, and it went to %q: %v", c.Member, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("%d may have it: %v", len(may), err)
		}
		at := slices.IndexFunc(may, func(m Member) bool { return m.Name == c.Member })
		if at < 0 {
			t.Fatalf("%q may not have it", c.Member)
		}
		if c.Cached < 0 || c.Cached >= r.Prompt || c.First < 0 {
			t.Fatalf("%+v is expected of a prompt of %d tokens", c, r.Prompt)
		}
		slices.Reverse(may)
		if again, _ := Choose(may, r); again != c {
			t.Fatalf("%+v, and in another order %+v", c, again)
		}
		o := may[len(may)-1-at].model(r.Model)
		better := *o
		better.Wait, better.Load = better.Wait/2, 0
		o.Wait, o.Load = better.Wait, better.Load
		if again, _ := Choose(may, r); again.Member != c.Member {
			t.Fatalf("%q has less to do, and %q is taken", c.Member, again.Member)
		}
	})
}

// A sketch has all that it was made of, in its way over the wire too, and little else.
func TestSketch(t *testing.T) {
	require.False(t, Sketch{}.Has(0))
	require.Equal(t, Sketch{}, SketchOf(nil))
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Key { return Key(rapid.Uint64().Draw(t, "key")) }), 1, 300).Draw(t, "keys")
		data, err := SketchOf(keys).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var s Sketch
		if err := s.UnmarshalBinary(data); err != nil {
			t.Fatal(err)
		}
		clear(data)
		for _, k := range keys {
			if !s.Has(k) {
				t.Fatalf("it lacks %x of %d keys", k, len(keys))
			}
		}
	})
	few, err := SketchOf([]Key{5}).MarshalBinary()
	require.NoError(t, err)
	require.Equal(t, setOfKey, bits.OnesCount64(binary.LittleEndian.Uint64(few)), "a key without upper bits")
	all := letters(strings.Repeat("q", MostKeys+5000))
	s := SketchOf(all)
	data, err := s.MarshalBinary()
	require.NoError(t, err)
	require.Len(t, data, MostSketch)
	has := func(keys []Key) (n int) {
		for _, k := range keys {
			if s.Has(k) {
				n++
			}
		}
		return n
	}
	require.Equal(t, MostKeys, has(all[:MostKeys]))
	require.Less(t, has(all[MostKeys:]), 5000/50, "one in a hundred is expected")
	for _, n := range []int{1, 7, 9, 24, 4, 2 * MostSketch} {
		require.ErrorContains(t, new(Sketch).UnmarshalBinary(make([]byte, n)), fmt.Sprintf("has %d bytes: want a power of two", n))
	}
	require.NoError(t, new(Sketch).UnmarshalBinary(nil))
}
