package devices

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParse: names of devices are read, and others refused with what is wanted.
func TestParse(t *testing.T) {
	for text, want := range map[string]Name{
		"cpu": {Kind: CPU}, "auto": {Kind: Auto}, "cuda": {Kind: CUDA}, "vulkan": {Kind: Vulkan},
		"cuda:1": {Kind: CUDA, Cards: [][]int{{1}}}, "cuda:0,2": {Kind: CUDA, Cards: [][]int{{0}, {2}}},
		"cuda:0+1,3":            {Kind: CUDA, Cards: [][]int{{0, 1}, {3}}},
		"vulkan:1,0":            {Kind: Vulkan, Cards: [][]int{{1}, {0}}},
		"member:attic:7777":     {Kind: Member, Members: []string{"attic:7777"}},
		"member:[::1]:7,b:8080": {Kind: Member, Members: []string{"[::1]:7", "b:8080"}},
	} {
		got, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "gpu", "CPU", "cpu:0", "auto:1", "cuda:", "cuda:x", "cuda:-1", "cuda:1,1", "cuda:1+1",
		"vulkan:0,", "cuda:99999999999999999999"} {
		_, err := Parse(text)
		require.ErrorContains(t, err, "want cpu, cuda", text)
	}
	for _, text := range []string{"member", "member:", "member:attic", "member:a:1,a:1", "member::7"} {
		_, err := Parse(text)
		require.ErrorContains(t, err, "want member:HOST:PORT", text)
	}
	_, err := Parse("vulkan:0+1")
	require.EqualError(t, err, `is "vulkan:0+1": only cards of CUDA compute a layer together: use cuda:N+M, or vulkan:N,M, `+
		"of which each computes some layers")
}
