package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/measure"
)

// suggest runs the command on a machine that was measured before, its disk perhaps.
func suggest(t *testing.T, disk float64, flags ...string) outcome {
	t.Helper()
	e, _ := envtest.CachingEnv(t, append([]string{"suggest", "--device", "cpu"}, flags...)...)
	home := t.TempDir()
	lookup := e.Lookup
	e.Lookup = func(name string) (string, bool) {
		if name == "HOME" {
			return home, true
		}
		return lookup(name)
	}
	at := home // the store will be there
	if disk == 0 {
		at = ""
	}
	known := compute.Unmeasured(e, at)
	known.Disk, known.Memory, known.Multiply, known.Attend, known.Gate = disk, 20e9, 1e12, 200e9, 4e9
	known.Measured = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, compute.Keep(e, known))
	return outcome{run(e), fmt.Sprint(e.Stdout), fmt.Sprint(e.Stderr)}
}

// TestSuggest: what fits follows from memory and context, and a speed is only said where it can be predicted.
func TestSuggest(t *testing.T) {
	for _, c := range []struct {
		disk   float64
		flags  []string
		memory string // the largest model that fits in memory
		speeds bool   // of all that do not
	}{
		{2e9, []string{"--ram", "4G"}, "Qwen/Qwen3-4B-GGUF:Q4_K_M", true},
		{2e9, []string{"--ram", "4G", "--ctx", "16384"}, "bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M", true},
		{2e9, []string{"--ram", "32G"}, "Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M", true},
		{0, []string{"--ram", "32G"}, "Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M", false},
		{0, []string{"--ram", "128G"}, "ggml-org/gpt-oss-120b-GGUF", false},
	} {
		o := suggest(t, c.disk, append(c.flags, "--json")...)
		require.Equal(t, exitDone, o.code, o.stderr)
		var said measure.SuggestJSON
		require.NoError(t, json.Unmarshal([]byte(o.stdout), &said))
		require.Len(t, said.Models, 12)
		largest := ""
		for _, m := range said.Models {
			switch m.Fits {
			case "memory":
				if !strings.Contains(m.Pull, "gpt-oss") { // its windows hold less than the context
					require.Greater(t, m.Takes, m.Size+m.KVBytes*int64(m.Context), "%s: steps compute with something", m.Pull)
				}
				require.LessOrEqual(t, m.Takes, said.Memory)
				largest = m.Pull
				active := float64(m.Size) * float64(m.Active) / float64(m.Parameters)
				require.InDelta(t, 0.85*20e9/active, m.Decode, 0.35*m.Decode, "%s: memory is read", m.Pull)
				require.Positive(t, m.Prefill)
			case "streams":
				require.Equal(t, c.speeds, m.Decode > 0, "%v %s", c.flags, m.Pull)
			default:
				require.NotEmpty(t, m.Why)
				require.Zero(t, m.Decode)
			}
		}
		require.Equal(t, c.memory, largest, "%v", c.flags)
	}
}

// TestSuggestText: a person sees a table, what is an estimate, and the line to type.
func TestSuggestText(t *testing.T) {
	o := suggest(t, 0, "--ram", "8G")
	require.Equal(t, exitDone, o.code, o.stderr)
	for line := range strings.Lines(o.stdout) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 110, line)
	}
	for _, want := range []string{"for 8.0 GiB of memory", "Speeds are predicted from 20.0 GB/s of memory, measured 2026-11-01",
		"sluice doctor --probe measures it", "and what steps compute with are counted", "The largest that fits and answers at 5 tokens/s or more:\n  sluice pull Qwen/Qwen3-4B-GGUF:Q4_K_M\n"} {
		require.Contains(t, o.stdout, want)
	}
	require.NotContains(t, suggest(t, 2e9, "--ram", "8G").stdout, "is not known")
	require.Contains(t, suggest(t, 2e9, "--ram", "100M").stdout, "None fits and answers")
	require.Equal(t, exitUsage, suggest(t, 0, "--ctx", "0").code)
}
