package wire

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

type private struct{ error }

func (private) Told() string { return "it is no model" }

func TestTold(t *testing.T) {
	for text, want := range map[string]string{
		`/mnt/ann/models/m.gguf: tensor "a/b": it broke`: `m.gguf: tensor "a/b": it broke`,
		`open /srv/My Models/m.gguf: no such file`:       `open m.gguf: no such file`,
		`linking /a b/m.gguf to /srv/c d/n.gguf`:         `linking m.gguf to n.gguf`,
		`stat "../x/m-00001-of-00002.gguf"`:              `stat "m-00001-of-00002.gguf"`,
		`models/m.gguf is cut`:                           `m.gguf is cut`,
		`owner/name:Q8_0 needs 3 GB/s, GET /health`:      `owner/name:Q8_0 needs 3 GB/s, GET /health`,
		`https://hub.test/a/b answers 404`:               `https://hub.test/a/b answers 404`,
	} {
		require.Equal(t, want, Told(errors.New(text)))
	}
	require.Equal(t, `the model "m": it is no model`, Told(fmt.Errorf("the model %q: %w", "m", private{errors.New("/etc/passwd is root")})))
}
