package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/measure"
)

// TestSelftest: the processor of this machine and the drive of this folder are fine; flags without a meaning are
// refused.
func TestSelftest(t *testing.T) {
	o := sluice("", "doctor", "--selftest", "--device", "cpu", "--json")
	require.Equal(t, exitDone, o.code, o.stdout+o.stderr)
	var list []measure.Finding
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &list))
	require.Len(t, list, 5)
	for _, f := range list {
		require.True(t, f.OK, f.State)
	}
	for _, c := range [][2]string{
		{"--device=cuda", "--device says what --selftest tests"},
		{"--selftest --device=cuda:x", `--device is "cuda:x": want cpu, cuda`},
		{"--selftest --device=cpu:0", "want cpu, cuda"},
		{"--selftest --device=metal", "want cpu, cuda"},
		{"--selftest --probe", "can't be used together"},
		{"--selftest -m x.gguf", "-m says where --probe measures"},
	} {
		o := sluice("", append([]string{"doctor"}, strings.Fields(c[0])...)...)
		require.Equal(t, exitUsage, o.code, c[0])
		require.Contains(t, o.stderr, c[1])
	}
}
