package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/measure"
	"github.com/sluice-ai/sluice/internal/mini"
)

// plan runs the command on the embedded model, on a machine that was measured before.
func plan(t *testing.T, flags ...string) outcome {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mini.gguf")
	require.NoError(t, os.WriteFile(path, mini.GGUF, 0o600))
	return planFile(t, path, flags...)
}

// planFile plans a file, on a machine whose speeds are known.
func planFile(t *testing.T, path string, flags ...string) outcome {
	t.Helper()
	e, _ := envtest.CachingEnv(t, append([]string{"plan", path, "--ctx", "2048"}, flags...)...)
	known := compute.Unmeasured(e, path)
	known.Direct, known.Disk, known.Memory, known.Multiply = true, 2e9, 20e9, 1e12
	known.Attend, known.Gate = 200e9, 4e9
	known.Measured = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, compute.Keep(e, known))
	return outcome{run(e), fmt.Sprint(e.Stdout), fmt.Sprint(e.Stderr)}
}

func TestPlanText(t *testing.T) {
	for _, flags := range [][]string{nil, {"--ram", "12M"}, {"--ram", "6M", "--seqs", "8"}, {"--no-repack"}} {
		o := plan(t, flags...)
		require.Equal(t, exitDone, o.code, o.stderr)
		for line := range strings.Lines(o.stdout) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
		}
		for _, want := range []string{"a context of 2048 tokens", "attention", "memory ", "KV cache", "expected: ", " at the end of the context",
			"measured 2026-11-01: disk 2.0 GB/s, memory 20.0 GB/s"} {
			require.Contains(t, o.stdout, want)
		}
		streams := len(flags) > 0 && flags[0] == "--ram"
		require.Equal(t, streams, strings.Contains(o.stdout, "stream through"), o.stdout)
		require.Equal(t, streams, strings.Contains(o.stdout, "read from disk for each token"), o.stdout)
	}
	o := plan(t, "--ram", "1M")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "1.0 MiB for weights are too few")
	require.Contains(t, o.stderr, "ask for at least 5M")
	require.Equal(t, exitDone, plan(t, "--ram", "5M").code)
}

// TestPlanKVTypes: the plan says how many bits cached values take, and the cache comes to no more, but for open blocks.
func TestPlanKVTypes(t *testing.T) {
	o := plan(t, "--kv-k", "q4", "--kv-v", "tq3")
	require.Contains(t, o.stdout, "KV cache, 1.7 KiB a token: q4/tq3, 4.5 and 3.125 bits")
	o = plan(t, "--kv-k", "q4", "--kv-v", "tq3", "--json")
	require.Regexp(t, `"kv_type": ?"q4/tq3"`, o.stdout)
	require.Regexp(t, `"kv_bits_v": ?3.125`, o.stdout)
}

// TestPlanKVHost: what waits beside the cache is shown, and has to be there.
func TestPlanKVHost(t *testing.T) {
	o := plan(t, "--kv-host", "64M")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Regexp(t, `(?m)^memory: 6[0-9]\.\d MiB for what the KV cache has no room for \(--kv-host\)$`, o.stdout)
	o = plan(t, "--kv-host", "64M", "--json")
	require.Regexp(t, `"kv_host": ?6\d{7}`, o.stdout)
	require.NotContains(t, plan(t, "--json").stdout, "kv_host")
	o = plan(t, "--kv-host", "900000G")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "more than there is: ask for less (--kv-host)")
}

// TestPlanJSON: the names are part of the interface, and the sums are right.
func TestPlanJSON(t *testing.T) {
	o := plan(t, "--ram", "8M", "--json")
	require.Equal(t, exitDone, o.code, o.stderr)
	var got struct {
		Tiers []struct {
			Name                         string
			Budget, Weights, KV, Scratch int64
		}
		Groups []struct {
			Segment, Expert int
			Home            string
			Bytes           int64
		}
		Expected struct {
			Decode, Prefill float64
			AtEnd           float64 `json:"prefill_at_end"`
		}
		Streamed float64 `json:"streamed_bytes_per_token"`
		KV       string  `json:"kv_type"`
		KVBytes  int64   `json:"kv_bytes_per_token"`
		BitsK    float64 `json:"kv_bits_k"`
		BitsV    float64 `json:"kv_bits_v"`
	}
	d := json.NewDecoder(strings.NewReader(o.stdout))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&got))
	require.Len(t, got.Tiers, 2)
	require.Equal(t, "device", got.Tiers[0].Name)
	require.Equal(t, "disk", got.Tiers[1].Name)
	require.EqualValues(t, 8<<20, got.Tiers[0].Budget)
	require.LessOrEqual(t, got.Tiers[0].Weights, int64(8<<20))
	require.Positive(t, got.Tiers[0].KV)
	require.Positive(t, got.Tiers[0].Scratch)
	require.Equal(t, []any{"f16", 16.0, 16.0}, []any{got.KV, got.BitsK, got.BitsV})
	require.Positive(t, got.KVBytes)
	disk := int64(0)
	for _, g := range got.Groups {
		require.Contains(t, []string{"device", "disk"}, g.Home)
		require.Equal(t, -1, g.Expert)
		if g.Home == "disk" {
			disk += g.Bytes
		}
	}
	require.Equal(t, got.Tiers[1].Weights, disk)
	require.EqualValues(t, disk, got.Streamed, "a dense model reads all that does not stay")
	require.InDelta(t, 2e9/got.Streamed, got.Expected.Decode, 1e-3)
	require.Positive(t, got.Expected.Prefill)
}

// TestPlanPrompts: the embedded model reads a prompt of 512 tokens on two cores as fast as it was measured to
// (docs/performance.md), within 15 %, where weights alone would give twice that; and slower at the end of a context.
func TestPlanPrompts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mini.gguf")
	require.NoError(t, os.WriteFile(path, mini.GGUF, 0o600))
	e, _ := envtest.CachingEnv(t, "plan", path, "--ctx", "2048", "--json")
	known := compute.Unmeasured(e, path)
	known.Disk, known.Memory, known.Multiply, known.Attend, known.Gate = 2e9, 30e9, 1.29e12, 280e9, 5e9
	require.NoError(t, compute.Keep(e, known))
	require.Equal(t, exitDone, run(e), e.Stderr)
	var got measure.PlanJSON
	require.NoError(t, json.Unmarshal([]byte(fmt.Sprint(e.Stdout)), &got))
	require.InEpsilon(t, 7105, got.Expected.Prefill, 0.15)
	require.Less(t, got.Expected.AtEnd, 0.7*got.Expected.Prefill)
}

func TestMemorySizes(t *testing.T) {
	for text, want := range map[string]int64{
		"6G": 6 << 30, "1.5g": 3 << 29, "800M": 800 << 20, "64K": 64 << 10, "2T": 2 << 40, "4096": 4096, "6GiB": 6 << 30,
		"6GB": 6 << 30, "1B": 1,
	} {
		var s env.Size
		require.NoError(t, s.UnmarshalText([]byte(text)), text)
		require.EqualValues(t, want, s, text)
	}
	for _, text := range []string{"", "G", "6X", "-1G", "0", "NaN", "Inf", "1e30G", "6 G"} {
		var s env.Size
		require.ErrorContains(t, s.UnmarshalText([]byte(text)), "is no amount of memory", text)
	}
}

// TestRAM: a budget changes where weights lie, and not the answer; what cannot work is refused.
func TestRAM(t *testing.T) {
	answer := func(flags ...string) outcome {
		e, _ := envtest.CachingEnv(t, append([]string{"run", "What is the capital of France?"}, flags...)...)
		known := compute.Unmeasured(e, "")
		known.Memory, known.Attend = 20e9, 200e9
		require.NoError(t, compute.Keep(e, known))
		return outcome{run(e), fmt.Sprint(e.Stdout), fmt.Sprint(e.Stderr)}
	}
	whole, part := answer(), answer("--ram", "8M")
	require.Equal(t, exitDone, part.code, part.stderr)
	require.Equal(t, whole.stdout, part.stdout)
	require.Contains(t, part.stderr, "streams: ")
	require.NotContains(t, whole.stderr, "streams: ")
	require.Equal(t, exitFailed, answer("--ram", "1M").code)
	require.Equal(t, exitUsage, answer("--ram", "100M", "--no-repack").code)
}
