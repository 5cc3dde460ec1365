package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/backend/remote"
	"github.com/sluice-ai/sluice/internal/pass"
	"github.com/sluice-ai/sluice/server"
	"github.com/sluice-ai/sluice/server/cluster"
	"github.com/sluice-ai/sluice/server/cluster/registry"
)

// clusterFlags make a server a member of a cluster.
type clusterFlags struct {
	Cluster string   `name:"cluster" table:"cluster" placeholder:"NAME" help:"Be a member of this cluster: what the server is asked goes to the member that should answer it, and others pass on to it. It needs --pass and --member-addr."`
	Members string   `name:"member-addr" table:"cluster" placeholder:"HOST:PORT" help:"Address of this machine where other members reach it, and no clients. Port 0 takes a free one."`
	Join    []string `name:"join" table:"cluster" placeholder:"HOST:PORT" help:"Addresses of other members, by which all are found. They need not be there yet. Or who lists them: etcd://HOST:PORT, consul://HOST:PORT (etcds, consuls: over TLS), in a pod k8s://NAMESPACE/SERVICE."`
	Lend    env.Size `name:"lend" table:"cluster" placeholder:"SIZE" help:"Memory in which this machine's processor computes layers of models that other members are too small for (--device member:HOST:PORT there), such as 8G. Default: none, it computes for nobody."`

	member *cluster.Cluster
	ln     net.Listener
	leave  func()
	lender *remote.Lender
}

// soon is how long before its end a pass is spoken of.
const soon = 30 * 24 * time.Hour

// open reads the pass and opens the address for members. It does nothing for a server that is to be no member.
func (f *clusterFlags) open(e *env.Env, flags *compute.Flags, o *server.Options) error {
	if f.Cluster == "" {
		if f.Members != "" || len(f.Join) > 0 || f.Lend > 0 || flags.Pass != "" && !flags.OverMembers() {
			return env.Usagef("--pass, --member-addr, --join and --lend are of members of a cluster: name it with --cluster")
		}
		return nil
	}
	if flags.Pass == "" || f.Members == "" {
		return env.Usagef("--cluster %s needs --pass FILE (sluice cluster cert makes it) and --member-addr HOST:PORT", f.Cluster)
	}
	p, err := f.pass(e, flags.Pass)
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(f.Members)
	if ip := net.ParseIP(host); err != nil || host == "" || ip != nil && ip.IsUnspecified() {
		return env.Usagef("--member-addr is %q: want HOST:PORT by which others reach this machine, such as 192.168.1.5:7777", f.Members)
	}
	if f.ln, err = net.Listen("tcp", f.Members); err != nil {
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err // the rest of the error only repeats the address
		}
		return fmt.Errorf("--member-addr %s: %w: choose another, or stop what listens there", f.Members, err)
	}
	at := f.Members
	if tcp, ok := f.ln.Addr().(*net.TCPAddr); ok {
		at = net.JoinHostPort(host, fmt.Sprint(tcp.Port))
	}
	f.member, err = f.of(e, cluster.Options{Pass: p, Addr: at, Log: o.Log})
	if err != nil {
		return errors.Join(env.Usagef("--join: %v", err), f.ln.Close())
	}
	o.Cluster = f.member
	if f.Lend > 0 {
		if f.lender, err = flags.Lender(e, int64(f.Lend)); err != nil {
			return err
		}
		o.Lender = f.lender
	}
	_, err = fmt.Fprintf(e.Stderr, "sluice: member %s of cluster %s, at %s\n", p.Member, p.Cluster, at)
	return err
}

// of makes the member, who finds others by their addresses, or by who lists them.
func (f *clusterFlags) of(e *env.Env, o cluster.Options) (*cluster.Cluster, error) {
	for _, word := range f.Join {
		if !registry.Is(word) {
			o.Join = append(o.Join, word)
			continue
		}
		r, err := registry.Open(word, registry.Self{Cluster: o.Pass.Cluster, Member: o.Pass.Member, Addr: o.Addr},
			registry.Machine(e.Lookup))
		if err != nil {
			return nil, err
		}
		o.Found = append(o.Found, r)
	}
	return cluster.New(o)
}

// pass reads the pass, and says so if it ends soon.
func (f *clusterFlags) pass(e *env.Env, path string) (*pass.Pass, error) {
	text, err := e.ReadFile(path, 64<<10)
	if err != nil {
		return nil, err
	}
	p, err := pass.Parse(text, e.Now)
	if err != nil {
		return nil, fmt.Errorf("--pass %s: %w", path, err)
	}
	if p.Cluster != f.Cluster {
		return nil, env.Usagef("--pass %s is of cluster %q, and --cluster is %q", path, p.Cluster, f.Cluster)
	}
	if p.Expires.Sub(e.Now()) < soon {
		fmt.Fprintf(e.Stderr, "sluice: the pass of %s ends on %s: make another with sluice cluster cert\n", p.Member,
			p.Expires.UTC().Format(time.DateOnly))
	}
	return p, nil
}

// begin has a server meet the others, unless it does already.
func (f *clusterFlags) begin(s *server.Server) {
	if f.member == nil || f.leave != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { f.member.Run(ctx) })
	all.Go(func() { _ = s.ServeMembers(f.ln) }) // it ends with the server
	f.leave = func() {
		cancel()
		all.Wait()
	}
}

// end has a server that has stopped, or never began, leave the cluster.
func (f *clusterFlags) end() {
	if f.member == nil {
		return
	}
	_ = f.ln.Close() // it may be closed
	if f.lender != nil {
		f.lender.Close()
		_ = f.lender.Device.Close() // nothing runs there
	}
	if f.leave != nil {
		f.leave()
	}
}
