package ollama

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScaled(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1500: "1.5K", 494_032_768: "494.0M", 7_615_616_512: "7.6B"} {
		require.Equal(t, want, scaled(n))
	}
}
