package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/internal/system"
	"github.com/sluice-ai/sluice/server"
	"github.com/sluice-ai/sluice/server/cluster"
	"github.com/sluice-ai/sluice/storage/arriving"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/store"
)

// lenders bring models that other members run: those of -m member://, into the store, while they are loaded, and those
// of --mirror.
type lenders struct {
	ctx    context.Context // of all that comes
	member *cluster.Cluster
	log    zerolog.Logger
	store  *store.Store
	wanted map[string]address // by the path to which they come

	mu     sync.Mutex
	coming map[string]*brought
	ends   sync.WaitGroup
}

// address is that of a model which a member runs.
type address struct{ member, model string }

// brought is a model that comes, or has come.
type brought struct {
	files   *arriving.Files
	paths   []string
	content string
}

// unfinished is a file beside a model that has not come as a whole.
const unfinished = "unfinished"

// placed gives the models that members have their places in the store.
func placed(e *env.Env, files []models.NamedFile, clustered bool) (*lenders, error) {
	l := &lenders{wanted: map[string]address{}, coming: map[string]*brought{}}
	for i := range files {
		member, model, ok, err := cluster.ParseAddress(files[i].Path)
		if err != nil {
			return nil, env.Usagef("-m: %v", err)
		}
		if !ok {
			continue
		}
		if !clustered {
			return nil, env.Usagef("-m %s is a model of a member of a cluster: name the cluster with --cluster", files[i].Path)
		}
		if l.store, err = namedmodel.OpenStore(e.Lookup); err != nil {
			return nil, err
		}
		if files[i].Name == "" {
			files[i].Name = model
		}
		files[i].Path = filepath.Join(l.store.Lent(member, model), url.PathEscape(model)+".gguf")
		l.wanted[files[i].Path] = address{member, model}
	}
	return l, nil
}

// join has the models come by a cluster, until ctx ends.
func (l *lenders) join(ctx context.Context, c *cluster.Cluster, f *compute.Flags, log zerolog.Logger) {
	if c != nil {
		l.ctx, l.member, l.log = ctx, c, log
		f.Reach(l)
	}
}

// meet has the server meet other members before its models are loaded, if one of these is theirs.
func (l *lenders) meet(c *Serve, s *server.Server) {
	if len(l.wanted) > 0 || strings.HasPrefix(c.Mirror, compute.Member) {
		c.begin(s)
	}
}

// Copies implements compute.Far.
func (l *lenders) Copies(at string) ([]source.Source, string, error) {
	member, model, _, err := cluster.ParseAddress(at)
	if err != nil {
		return nil, "", env.Usagef("%v", err)
	}
	lender, err := l.find(address{member, model}, true)
	if err != nil {
		return nil, "", err
	}
	return lender.Copies(), lender.Content, nil
}

// find finds who lends a model. It waits less where there is one here already.
func (l *lenders) find(at address, here bool) (*cluster.Lender, error) {
	patience := 10 * time.Second
	if here {
		patience = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	defer cancel()
	return l.member.Lender(ctx, at.member, at.model)
}

// Open implements compute.Far. A model that is whole here and the same there comes no second time; if nobody is there,
// what is here has to do.
func (l *lenders) Open(_ *env.Env, path string) (*gguf.File, error) {
	from, ok := l.wanted[path]
	if !ok {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.coming[path]; b != nil {
		if file, err := b.open(); err == nil {
			return file, nil
		}
		delete(l.coming, path) // it is begun anew
		_ = b.files.Close()    // why it failed was told
	}
	file, here := whole(path)
	lender, err := l.find(from, file != nil)
	switch {
	case err != nil && file != nil:
		l.log.Warn().Err(err).Str("file", path).Msg("the model is taken as it was brought before")
		return file, nil
	case err != nil:
		return nil, err
	case file != nil && here == lender.Content:
		return file, nil
	case file != nil:
		_ = file.Close() // another one takes its place
	}
	b, err := l.begin(lender, path)
	if err != nil {
		return nil, err
	}
	if file, err = b.open(); err != nil {
		return nil, errors.Join(err, b.files.Close())
	}
	l.coming[path] = b
	return file, nil
}

// whole opens a model that was brought before; nil: there is none, or not all of it.
func whole(path string) (file *gguf.File, content string) {
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), unfinished)); err == nil {
		return nil, ""
	}
	paths, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.gguf")) // the pattern is right
	if len(paths) == 0 {
		return nil, ""
	}
	file, err := gguf.Open(paths[0])
	if err != nil {
		return nil, ""
	}
	if content, err = compute.ContentOf(file); err != nil {
		_ = file.Close() // it is brought anew
		return nil, ""
	}
	return file, content
}

// begin has a model come from a member, in place of what is there.
func (l *lenders) begin(from *cluster.Lender, path string) (_ *brought, err error) {
	folder := filepath.Dir(path)
	if err := l.store.MakeLent(from.Member, from.Model); err != nil {
		return nil, err
	}
	held, err := safefile.Hold(folder)
	if errors.Is(err, safefile.ErrHeld) {
		return nil, fmt.Errorf("%s: another process brings the model there: wait for it", folder)
	}
	if err != nil {
		return nil, err
	}
	b := &brought{content: from.Content}
	defer func() {
		if err != nil {
			err = errors.Join(err, held.Close())
		}
	}()
	if err := l.clear(folder); err != nil {
		return nil, err
	}
	var sizes []int64
	total, base := int64(0), path[:len(path)-len(".gguf")]
	for i, p := range from.Parts {
		name := path
		if n := len(from.Parts); n > 1 {
			name = fmt.Sprintf("%s-%05d-of-%05d.gguf", base, i+1, n)
		}
		b.paths, sizes, total = append(b.paths, name), append(sizes, p.Bytes), total+p.Bytes
	}
	if free, err := system.Room(folder); err == nil && total > free {
		return nil, fmt.Errorf("%s: %s are to come, and the disk has room for %s", folder, env.BinarySize(total), env.BinarySize(free))
	}
	if b.files, err = arriving.Begin(l.ctx, b.paths, sizes, from.Read, b.check); err != nil {
		return nil, err
	}
	for i, p := range from.Parts {
		if err := b.files.Part(i).Await(0, p.Head); err != nil {
			return nil, errors.Join(err, b.files.Close())
		}
	}
	l.ends.Go(func() { l.finish(b, folder, held) })
	return b, nil
}

// clear empties a folder but for what holds it, and marks it as unfinished.
func (l *lenders) clear(folder string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*.gguf"))
	for _, path := range paths {
		err = errors.Join(err, os.Remove(path))
	}
	return errors.Join(err, os.WriteFile(filepath.Join(folder, unfinished), nil, 0o600))
}

// check compares what has come with what was announced.
func (b *brought) check() error {
	file, err := gguf.Open(b.paths[0])
	if err != nil {
		return fmt.Errorf("what came is no model: %w", err)
	}
	is, err := compute.ContentOf(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if is != b.content {
		return fmt.Errorf("%s: what came is another model: its content is %s, and %s was announced", file.Name, is, b.content)
	}
	return nil
}

// open opens the model, of which at least the heads have come.
func (b *brought) open() (*gguf.File, error) {
	if b.files.Part(0).Here() {
		return gguf.Open(b.paths[0])
	}
	if err := b.files.Err(); err != nil {
		return nil, err
	}
	var parts []source.Arriving
	for i := range b.paths {
		parts = append(parts, b.files.Part(i))
	}
	return gguf.OpenArriving(b.paths[0], b.content, parts)
}

// finish waits until a model is whole, and says so, once the drive has it.
func (l *lenders) finish(b *brought, folder string, held io.Closer) {
	defer held.Close()
	log := l.log.With().Str("folder", folder).Logger()
	err := b.files.Wait()
	switch {
	case errors.Is(err, arriving.ErrClosed):
		return
	case err == nil:
		err = errors.Join(b.files.Sync(), os.Remove(filepath.Join(folder, unfinished)))
	}
	if err != nil {
		log.Warn().Err(err).Msg("a model did not come from another member")
		return
	}
	log.Info().Msg("a model has come from another member")
}

// close ends what comes. Models that are read meanwhile have left.
func (l *lenders) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.coming {
		b.files.Stop()
	}
	l.ends.Wait()
	var errs []error
	for _, b := range l.coming {
		errs = append(errs, b.files.Close())
	}
	return errors.Join(errs...)
}
