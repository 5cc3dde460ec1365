package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/watch"
	"github.com/sluice-ai/sluice/internal/pass"
	"github.com/sluice-ai/sluice/internal/safefile"
)

// Cluster has the commands about clusters.
type Cluster struct {
	Show watch.Members `cmd:"" default:"withargs" help:"Show the members of the cluster of a running server: what is done without a word."`
	Cert cert          `cmd:"" help:"Make what the members of a cluster show each other: an authority, and a pass for each."`
}

func (Cluster) Examples() [2]string { return [2]string{`sluice cluster`, cert{}.Examples()[0]} }

// cert makes passes.
type cert struct {
	Members []string `arg:"" placeholder:"MEMBER" help:"Names of members, such as desk and attic: small letters, digits, hyphens."`
	Cluster string   `name:"cluster" placeholder:"NAME" help:"Name of the cluster, needed once, when its authority is made."`
	Folder  string   `name:"folder" short:"o" default:"." placeholder:"FOLDER" help:"Folder of authority.pem, which is made if it is not there, and of the passes. Default: this one."`
	Days    int      `default:"365" placeholder:"N" help:"For how long the passes are valid, 1 to 3650. Default: 365."`
	env.ForceFlag
}

func (cert) Examples() [2]string {
	return [2]string{`sluice cluster cert --cluster home desk attic`, `sluice cluster cert -o passes garage --days 30`}
}

// Help is what the flags do not say.
func (cert) Help() string {
	return "Each member gets a file, MEMBER.pem, with its certificate and private key: its pass, which lets it join. Copy it to " +
		"that machine by a way that you trust, and leave authority.pem where it is: whoever has it can make members. The files " +
		"can be read by you alone."
}

const (
	authorityFile = "authority"
	suffix        = ".pem"
	mostFile      = 64 << 10
)

func (c *cert) Run(e *env.Env) error {
	if err := env.Within("--days", c.Days, 1, 3650); err != nil {
		return err
	}
	if slices.Contains(c.Members, authorityFile) {
		return env.Usagef("a member cannot be called %s: its pass would lie where the authority does", authorityFile)
	}
	a, made, err := c.authority(e)
	if err != nil {
		return err
	}
	passes := make([][]byte, len(c.Members))
	var until time.Time
	for i, name := range c.Members { // before anything is written
		if passes[i], until, err = a.Pass(name, e.Now(), time.Duration(c.Days)*24*time.Hour); err != nil {
			return env.Usagef("%v", err)
		}
		if err := c.free(e, c.path(name)); err != nil {
			return err
		}
	}
	if made != nil {
		if err := c.write(e, authorityFile, made, false, fmt.Sprintf("the authority of cluster %s, until %s: keep it here",
			a.Cluster, a.Expires.UTC().Format(time.DateOnly))); err != nil {
			return err
		}
	}
	for i, name := range c.Members {
		if err := c.write(e, name, passes[i], true, fmt.Sprintf("the pass of %s in cluster %s, until %s: bring it there", name,
			a.Cluster, until.UTC().Format(time.DateOnly))); err != nil {
			return err
		}
	}
	return nil
}

func (c *cert) path(name string) string { return filepath.Join(c.Folder, name+suffix) }

// authority reads the authority of the folder, or makes one; made is then its file, which is not written yet.
func (c *cert) authority(e *env.Env) (a *pass.Authority, made []byte, err error) {
	path := c.path(authorityFile)
	text, err := e.ReadFile(path, mostFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if c.Cluster == "" {
			return nil, nil, env.Usagef("there is no %s: name the cluster whose authority is to be made with --cluster NAME, or "+
				"the folder of another with -o", path)
		}
		if a, err = pass.NewAuthority(c.Cluster, e.Now()); err != nil {
			return nil, nil, env.Usagef("%v", err)
		}
		made, err = a.Marshal()
		return a, made, err
	case err != nil:
		return nil, nil, err
	}
	if a, err = pass.ParseAuthority(text); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.Cluster != "" && c.Cluster != a.Cluster {
		return nil, nil, env.Usagef("%s is the authority of cluster %q, not of %q: name another folder with -o", path, a.Cluster,
			c.Cluster)
	}
	return a, nil, nil
}

// free refuses to replace a pass, unless that is wanted.
func (c *cert) free(e *env.Env, path string) error {
	err := safefile.Free(path)
	if errors.Is(err, safefile.ErrTaken) {
		if c.Force {
			return nil
		}
		return e.MayReplace(path)
	}
	return env.Unfit(path, err)
}

// write writes a file of the folder, and says what it is.
func (c *cert) write(e *env.Env, name string, text []byte, replace bool, what string) error {
	path := c.path(name)
	if err := os.MkdirAll(c.Folder, 0o700); err != nil {
		return env.OnFile(c.Folder, err)
	}
	if err := safefile.Write(path, text, 0o600, replace); err != nil {
		return env.Unfit(path, err)
	}
	_, err := fmt.Fprintf(e.Stdout, "%s is %s\n", env.Printable(path), what)
	return err
}
