package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server"
)

type serveCmd struct {
	engineFlags
	Addr     string   `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address to listen on. The default reaches this machine only; :8080 is all of its addresses; port 0 takes a free one. Default: 127.0.0.1:8080."`
	APIKey   []string `name:"api-key" sep:"none" placeholder:"KEY" help:"Key that clients must send. May be repeated. Without one, anybody who reaches the address may ask."`
	Name     string   `placeholder:"NAME" help:"Name of the model for clients. Default: the one in its file."`
	Parallel int      `placeholder:"N" help:"Answers computed at once; more wait. Default: 32."`
}

func (serveCmd) examples() [2]string {
	return [2]string{`sluice serve`, `sluice serve -m model.gguf --addr :8080 --api-key "$KEY"`}
}

// Help is what the flags do not say.
func (serveCmd) Help() string {
	return "The address is taken at once, and who connects waits until the model is loaded; then the URL is printed. " +
		"Requests say how tokens are chosen; what they leave out is the model's own recommendation. Ctrl-C, or SIGTERM, " +
		"lets open answers finish for up to 10 seconds, a second one cuts them. It ends with 0 after the first."
}

// patience is how long open answers may take when the server is told to stop.
const patience = 10 * time.Second

func (c *serveCmd) Run(e *env) error {
	if c.Parallel < 0 {
		return usagef("--parallel is %d: want a number of answers, such as 8", c.Parallel)
	}
	if slices.Contains(c.APIKey, "") {
		return usagef("--api-key is empty: want a text that is hard to guess")
	}
	ctx, cancel := e.interruptible(context.Background())
	defer cancel()
	ln, err := net.Listen("tcp", c.Addr)
	if err != nil {
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err // the rest of it only repeats the address
		}
		return fmt.Errorf("--addr %s: %w: choose another, such as 127.0.0.1:8081, or stop what listens there", c.Addr, err)
	}
	defer ln.Close()
	c.Log = cmp.Or(c.Log, "warn")
	engine, err := c.start(ctx, e, func(cfg *actors.Config) { cfg.Sequences = c.Parallel })
	if err != nil {
		return err
	}
	defer shut(engine)
	s := server.New(server.One(engine, c.Name), server.Options{APIKeys: c.APIKey, Log: c.logger(e)})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	if err := c.announce(e, engine, ln.Addr()); err != nil {
		return err
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return c.stop(e, s)
	}
}

// announce prints the URL, and for a person what to do with it.
func (c *serveCmd) announce(e *env, engine *actors.Engine, addr net.Addr) error {
	if engine.Info.TemplateNote != "" {
		fmt.Fprintln(e.stderr, "sluice: "+engine.Info.TemplateNote)
	}
	url := "http://" + reachable(addr)
	name := printable(cmp.Or(c.Name, engine.Info.Name))
	if _, err := fmt.Fprintf(e.stdout, "%s serves %s\n", url, name); err != nil {
		return fmt.Errorf("writing the URL: %w", err)
	}
	if !e.isTerminal(e.stdout) {
		return nil
	}
	key := ""
	if len(c.APIKey) > 0 {
		key = "\n  -H 'Authorization: Bearer KEY' \\"
	}
	p := pane{e.stdout, ansi(e, e.stdout)}
	_, err := fmt.Fprintln(p.w, p.dimmed(fmt.Sprintf(`Ctrl-C stops it. To try it:
curl %s/v1/chat/completions \%s
  -d '{"messages": [{"role": "user", "content": "What is the capital of France?"}]}'`, url, key)))
	return err
}

// reachable is an address as a client on this machine writes it.
func reachable(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return addr.String()
}

// stop lets open answers finish, until patience or another Ctrl-C ends.
func (c *serveCmd) stop(e *env, s *server.Server) error {
	ctx, cancel := e.interruptible(context.Background())
	defer cancel()
	fmt.Fprintln(e.stderr, "sluice: stopping when open answers are finished; Ctrl-C again cuts them")
	ctx, cancel = context.WithTimeout(ctx, patience)
	defer cancel()
	err := s.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		fmt.Fprintf(e.stderr, "sluice: answers that were not finished after %v were cut\n", patience)
		return nil
	}
	return err
}
