package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHead: a file's head changes no answer, is counted by the plan, unless nothing is to be guessed, and a file
// without one is refused with words where it is asked for.
func TestHead(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "small")
	require.NoError(t, os.Mkdir(folder, 0o700))
	config, file := filepath.Join(folder, "config.json"), filepath.Join(folder, "small.gguf")
	require.NoError(t, os.WriteFile(config, []byte(`{"model_type": "qwen3_5_text", "num_hidden_layers": 2, "hidden_size": 64,
		"intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
		"linear_conv_kernel_dim": 4, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16,
		"linear_value_head_dim": 16, "full_attention_interval": 2, "vocab_size": 8192, "max_position_embeddings": 2048,
		"rms_norm_eps": 1e-5, "mtp_num_hidden_layers": 1}`), 0o600))
	o := sluice("", "synth", "--config", config, "-o", file, "--quant", "Q8_0")
	require.Equal(t, exitDone, o.code, o.stderr)
	ask := []string{"run", "-m", file, "Well?", "--temp", "0", "-n", "40", "--ctx", "512", "--speculate"}
	without := sluice("", append(ask, "off")...)
	require.Equal(t, exitDone, without.code, without.stderr)
	for _, how := range []string{"auto", "mtp"} {
		with := sluice("", append(ask, how)...)
		require.Equal(t, exitDone, with.code, with.stderr)
		require.Equal(t, without.stdout, with.stdout)
	}
	const takes = "The head that guesses tokens takes as well: weights "
	for how, there := range map[string]bool{"auto": true, "mtp": true, "ngram": false, "off": false} {
		o := planFile(t, file, "--speculate", how)
		require.Equal(t, exitDone, o.code, o.stderr)
		if there {
			require.Contains(t, o.stdout, takes)
		} else {
			require.NotContains(t, o.stdout, takes)
		}
	}
	o = sluice("", "run", "Well?", "--speculate", "mtp")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "has no head that predicts tokens further on (nextn tensors): convert its folder again if")
}
