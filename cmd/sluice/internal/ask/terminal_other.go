//go:build !linux

package ask

import "github.com/sluice-ai/sluice/cmd/sluice/internal/env"

// newEditor takes no terminal here yet: it edits lines by itself.
func newEditor(*env.Env, env.Pane) *editor { return nil }
