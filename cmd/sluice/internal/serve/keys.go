package serve

import (
	"bufio"
	"bytes"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// keys are those that clients may send: of the command line, which other users of the machine can see, of files, and of
// the environment.
func (c *Serve) keys(e *env.Env) ([]string, error) {
	if slices.Contains(c.APIKey, "") {
		return nil, env.Usagef("--api-key is empty: want a text that is hard to guess")
	}
	keys := c.APIKey
	for _, name := range c.APIKeyFile {
		text, err := e.ReadFile(name, env.MostDescription)
		if err != nil {
			return nil, err
		}
		before := len(keys)
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			if key := strings.TrimSpace(lines.Text()); key != "" && !strings.HasPrefix(key, "#") {
				keys = append(keys, key)
			}
		}
		if len(keys) == before {
			return nil, env.Usagef("--api-key-file %s holds no key: want one in each line", name)
		}
	}
	if key, ok := e.Lookup(env.KeyVariable); ok {
		if key = strings.TrimSpace(key); key == "" {
			return nil, env.Usagef("%s is empty: unset it, or set it to a text that is hard to guess", env.KeyVariable)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
