package main

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
)

// keys are those that clients may send: of the command line, which other users of the machine can see, of files, and of
// the environment.
func (c *serveCmd) keys(e *env) ([]string, error) {
	if slices.Contains(c.APIKey, "") {
		return nil, usagef("--api-key is empty: want a text that is hard to guess")
	}
	keys := c.APIKey
	for _, name := range c.APIKeyFile {
		text, err := e.readFile(name, mostDescription)
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
			return nil, usagef("--api-key-file %s holds no key: want one in each line", name)
		}
	}
	if key, ok := e.lookup(keyVariable); ok {
		if key = strings.TrimSpace(key); key == "" {
			return nil, usagef("%s is empty: unset it, or set it to a text that is hard to guess", keyVariable)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
