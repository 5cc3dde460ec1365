package watch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/server/cluster"
)

// Members shows who is in a cluster.
type Members struct {
	JSON bool `name:"json" help:"Print JSON."`
	remoteFlags
}

func (Members) Examples() [2]string {
	return [2]string{`sluice cluster`, `sluice cluster --addr 192.168.1.5:8080 --json`}
}

// Help is what the flags do not say.
func (Members) Help() string {
	return "Any member is asked, and says what it hears of the others: their models, and addresses where nobody is heard, with " +
		"the reason."
}

// Town is a cluster as one of its members sees it, the member itself first.
type Town struct {
	Cluster string          `json:"cluster"`
	Members []cluster.Shown `json:"members"`
}

func (c *Members) Run(e *env.Env) error {
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	town, err := c.town(ctx, e)
	switch {
	case err != nil:
		return err
	case town == nil:
		return fmt.Errorf("the server at %s is no member of a cluster: start it with serve --cluster, or name another with --addr",
			c.Addr)
	case c.JSON:
		return env.PrintJSON(e.Stdout, town)
	}
	_, err = fmt.Fprintln(e.Stdout, strings.Join(town.lines(), "\n"))
	return err
}

// town asks a server for its cluster; nil: it is of none.
func (f *remoteFlags) town(ctx context.Context, e *env.Env) (*Town, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	body, err := f.get(ctx, e, "/cluster")
	if no := (*answered)(nil); errors.As(err, &no) && no.status == http.StatusNotFound {
		return nil, nil //nolint:nilnil // most servers are of no cluster
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var town Town
	if err := json.NewDecoder(body).Decode(&town); err != nil {
		return nil, fmt.Errorf("the server at %s tells what is no list of members: %w: it may be an older sluice", f.Addr, err)
	}
	return &town, nil
}

// lines are a table of members, with its head.
func (w *Town) lines() []string {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "cluster %s\tfor members\theard\tmodels", env.Printable(w.Cluster))
	for i := range w.Members {
		m := &w.Members[i]
		fmt.Fprintf(t, "\n%s\t%s\t%s\t%s", env.Printable(cmp.Or(m.Member, "nobody")), env.Printable(m.Addr), heard(m), state(m))
	}
	_ = t.Flush() // a Builder takes all
	return strings.Split(text.String(), "\n")
}

func heard(m *cluster.Shown) string {
	switch {
	case m.Self:
		return "it is asked"
	case m.Member == "":
		return "never, or no more"
	}
	return fmt.Sprintf("%v ago", time.Duration(m.Heard)*time.Millisecond)
}

// state is what a member has, and what is wrong with it.
func state(m *cluster.Shown) string {
	var all []string
	if len(m.Models) > 0 {
		all = append(all, strings.Join(m.Models, ", "))
	}
	if n := len(m.Others); n > 0 {
		all = append(all, fmt.Sprintf("%d unloaded", n))
	}
	if m.Drained {
		all = append(all, "takes nothing new")
	}
	if m.Fault != "" {
		all = append(all, m.Fault)
	}
	return env.Visible(strings.Join(all, "; "))
}
