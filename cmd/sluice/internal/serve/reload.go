package serve

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/server"
)

// reloader has a server take up what changed in files of keys, and in the places where its models lie.
type reloader struct {
	serve     *Serve
	e         *env.Env
	server    *server.Server
	loader    *loader
	terminals []any // streams that were a person's terminal at the start

	keys   []string
	models map[string]namedmodel.State
}

func newReloader(c *Serve, e *env.Env, s *server.Server, l *loader, keys []string) *reloader {
	r := &reloader{serve: c, e: e, server: s, loader: l, keys: keys}
	for _, stream := range []any{e.Stdin, e.Stdout, e.Stderr} {
		if e.IsTerminal(stream) {
			r.terminals = append(r.terminals, stream)
		}
	}
	r.models = r.look()
	return r
}

// abandoned says whether SIGHUP came because the terminal is closed that the server was started from.
func (r *reloader) abandoned() bool {
	return slices.ContainsFunc(r.terminals, func(stream any) bool { return !r.e.IsTerminal(stream) })
}

// until reloads at each hang-up until the server has ended, for which it returns true and why, or is to be stopped.
func (r *reloader) until(ctx context.Context, hangUps <-chan os.Signal, served <-chan error) (ended bool, err error) {
	for {
		select {
		case err := <-served:
			return true, err
		case <-hangUps:
			if r.abandoned() {
				return false, nil
			}
			r.reload()
		case <-ctx.Done():
			return false, nil
		}
	}
}

// look returns the models that there are now, with the state of their files.
func (r *reloader) look() map[string]namedmodel.State {
	all := map[string]namedmodel.State{}
	for _, name := range r.loader.models.list() {
		if path, ok := r.loader.models.path(name); ok {
			all[name] = namedmodel.StateOf(r.e.Lookup, path)
		}
	}
	return all
}

// reload reads keys and lists of models again, and says what is new and what has gone. What cannot be read stays as it
// was.
func (r *reloader) reload() {
	keys, err := r.reloadKeys()
	if err != nil {
		keys = "the keys stay as they are"
		fmt.Fprintf(r.e.Stderr, "sluice: %v\n", err)
	}
	models, err := r.reloadModels()
	if err != nil {
		models = "the models stay as they are"
		fmt.Fprintf(r.e.Stderr, "sluice: %v\n", err)
	}
	fmt.Fprintf(r.e.Stderr, "sluice: read again: %s; %s\n", keys, models)
}

func (r *reloader) reloadKeys() (news string, err error) {
	keys, err := r.serve.keys(r.e)
	if err != nil {
		return "", err
	}
	fresh, gone := without(keys, r.keys), without(r.keys, keys)
	r.server.SetKeys(keys)
	r.keys = keys
	if len(fresh)+len(gone) == 0 {
		return "the keys are the same", nil
	}
	return fmt.Sprintf("keys: %d new, %d gone", len(fresh), len(gone)), nil
}

// without lists the texts of all that are not among some.
func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(text string) bool { return slices.Contains(some, text) })
}

// reloadModels finds models that came, went, or lie in another file. The last are loaded anew when they are asked for.
func (r *reloader) reloadModels() (news string, err error) {
	if r.serve.Folder != "" {
		if _, err := os.ReadDir(r.serve.Folder); err != nil {
			return "", fmt.Errorf("--models %w", env.OnFile(r.serve.Folder, err))
		}
	}
	r.loader.models.forget()
	now := r.look()
	var fresh, gone, other []string
	for name, state := range now {
		before, known := r.models[name]
		if !known {
			fresh = append(fresh, env.Printable(name))
		} else if before != state {
			other = append(other, env.Printable(name))
			r.loader.swapper.Changed(name)
		}
	}
	for name := range r.models {
		if _, here := now[name]; !here {
			gone = append(gone, env.Printable(name))
		}
	}
	r.models = now
	var parts []string
	for _, part := range []struct {
		what  string
		names []string
	}{{"new", fresh}, {"gone", gone}, {"changed", other}} {
		if slices.Sort(part.names); len(part.names) > 0 {
			parts = append(parts, part.what+" "+strings.Join(part.names, ", "))
		}
	}
	if parts == nil {
		return "the models are the same", nil
	}
	return "models: " + strings.Join(parts, "; "), nil
}
