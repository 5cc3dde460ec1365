package serve

import (
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// keys are the keys that clients may send: from the command line (which other users of the machine can see), from
// files, and from the environment.
func (c *Serve) keys(e *env.Env) ([]string, error) {
	blank := func(key string) bool { return strings.TrimSpace(key) == "" }
	if slices.ContainsFunc(c.APIKey, blank) {
		return nil, env.Usagef("--api-key is empty: want a text that is hard to guess")
	}
	var keys []string
	for _, key := range c.APIKey {
		keys = append(keys, strings.TrimSpace(key)) // trimmed, as keys in requests are
	}
	for _, name := range c.APIKeyFile {
		text, err := e.ReadFile(name, env.MostDescription)
		if err != nil {
			return nil, err
		}
		before := len(keys)
		for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
			if key := strings.TrimSpace(line); key != "" && !strings.HasPrefix(key, "#") {
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
