//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/measure"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/kvmix"
)

// cached runs commands that share a cache folder.
type cached struct {
	*testing.T
	lookup func(string) (string, bool)
}

func newCached(t *testing.T) *cached {
	e, _ := envtest.CachingEnv(t)
	return &cached{t, e.Lookup}
}

func (c *cached) sluice(args ...string) outcome {
	e := envtest.NewEnv("", args...)
	e.Lookup = c.lookup
	code := run(e)
	return outcome{code, fmt.Sprint(e.Stdout), fmt.Sprint(e.Stderr)}
}

func (c *cached) done(args ...string) outcome {
	c.Helper()
	o := c.sluice(args...)
	require.Zero(c, o.code, o.stderr)
	return o
}

// TestKVProfile: a model's profile says what types lose by layer and head, is kept for its content, and --kv auto takes
// types from it.
func TestKVProfile(t *testing.T) {
	models := filepath.Join(testref.Dir(t), "models")
	model, text := filepath.Join(models, "draft-bf16.gguf"), filepath.Join(models, "heldout-en.txt")
	c := newCached(t)
	tell := func(kv string) (o outcome, got measure.Compared) {
		o = c.done("perplexity", "-m", model, "-f", text, "-c", "192", "--chunks", "2", "--kv", kv, "--against", "f16", "--json")
		require.NoError(t, json.Unmarshal([]byte(o.stdout), &got))
		return o, got
	}
	without, uniform := tell("auto:5")
	require.Contains(t, without.stderr, "sluice: --kv auto:5: "+model+" has no profile of its KV cache: all layers take q5/q4; "+
		"sluice kv-profile -m MODEL -f TEXT measures which layers want more bits")
	require.Equal(t, "q5/q4", uniform.KV)

	o := c.done("kv-profile", "-m", model, "-f", text, "-c", "128", "--chunks", "2", "--bits", "4.3", "--json")
	var p kvmix.Profile
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &p))
	require.Equal(t, 2*63, p.Tokens)
	require.Len(t, p.Layers, 4)
	for _, l := range p.Layers {
		for _, s := range []kvmix.Side{l.K, l.V} {
			require.Len(t, s.Heads, l.KVHeads)
			require.True(t, slices.IsSorted(s.Errors), "%v of %v", s.Errors, p.Types)
			require.Less(t, s.Errors[0], 1e-6)
			require.InDelta(t, .25, s.Coarse, .24)
		}
	}
	require.Len(t, p.Uniform, 6)
	require.Equal(t, [][2]string{{"q8", "tq2"}}, p.Uniform[5].KV)
	require.Greater(t, p.Uniform[4].KLMean, 2*p.Uniform[0].KLMean, "tq3 loses more than q8")
	require.Len(t, p.Mix.KV, 4)
	require.LessOrEqual(t, p.Mix.Bits, 4.3)

	with, mixed := tell("auto:4.3")
	require.NotContains(t, with.stderr, "profile")
	require.Equal(t, "auto:4.3", mixed.KV)
	require.InDelta(t, p.Mix.BitsK, mixed.BitsK, 1e-3)
	require.InDelta(t, p.Mix.BitsV, mixed.BitsV, 1e-3)
	require.Less(t, mixed.Ratio, 1.1)
	require.Equal(t, with.stdout, c.done("perplexity", "-m", model, "-f", text, "-c", "192", "--chunks", "2", "--kv", "auto:4.3",
		"--against", "f16", "--json").stdout)
	require.Contains(t, c.done("plan", model, "--kv", "auto", "--json").stdout, `"auto:5.5"`)
	require.Contains(t, c.sluice("run", "--kv", "auto", "hi").stderr, "no profile", "it is another model's")
}

// TestKVProfileRefuses: what cannot be measured or chosen is said, with what to do.
func TestKVProfileRefuses(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("The fox is at home. ", 200)), 0o600))
	for _, c := range []struct{ command, want string }{
		{"run --kv auto --kv-k q8 hi", "--kv auto chooses the types of keys and values: leave out --kv-k and --kv-v"},
		{"run --kv auto:0.5 hi", `--kv: "auto:0.5": want auto:BITS with the bits of a value, such as auto:4.5`},
		{"run --kv auto: hi", `--kv: "auto:": want auto:BITS`},
		{"run --kv auto:2 hi", "--kv auto:2: 2 bits of a value: the least are 2.62"},
		{"kv-profile --kv q8 -f " + text, "leave out --kv, --kv-k and --kv-v"},
		{"kv-profile -c 2 -f " + text, "-c is 2"},
		{"kv-profile -f " + text + " --bits 2 -c 128 --chunks 1", "--bits: 2 bits of a value"},
		{"kv-profile -f " + text + " -c 4096", "want at least 8192, two chunks"},
	} {
		o := newCached(t).sluice(strings.Fields(c.command)...)
		require.NotZero(t, o.code, c.command)
		require.Contains(t, o.stderr, c.want)
	}
}

// TestKVAutoInSettings: wherever a setting says --kv, it may say auto.
func TestKVAutoInSettings(t *testing.T) {
	o := withSettings(t, "kv = 'auto:4.5'", nil, "config", "--json")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "auto:4.5")
}
