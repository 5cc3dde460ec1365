//go:build !linux

package ask

import "github.com/sluice-ai/sluice/cmd/sluice/internal/env"

// newEditor returns nil: on this system the terminal itself edits lines.
func newEditor(*env.Env, env.Pane) *editor { return nil }
