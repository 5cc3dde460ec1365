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
		more, err := c.keysIn(e, name)
		if err != nil {
			return nil, err
		}
		keys = append(keys, more...)
	}
	if key, ok := e.Lookup(env.KeyVariable); ok {
		if key = strings.TrimSpace(key); key == "" {
			return nil, env.Usagef("%s is empty: unset it, or set it to a text that is hard to guess", env.KeyVariable)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// keysIn reads the keys of a file. Those of standard input are remembered: it cannot be read again.
func (c *Serve) keysIn(e *env.Env, name string) (keys []string, err error) {
	if keys, ok := c.typed[name]; ok {
		return keys, nil
	}
	text, err := e.ReadFile(name, env.MostDescription)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		if key := strings.TrimSpace(line); key != "" && !strings.HasPrefix(key, "#") {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, env.Usagef("--api-key-file %s holds no key: want one in each line", name)
	}
	if name == "-" {
		c.typed = map[string][]string{name: keys}
	}
	return keys, nil
}
