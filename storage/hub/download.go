package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/storage/store"
)

const (
	connections = 4         // connections that fetch pieces of one file at the same time
	longestRun  = 8         // most pieces that one request asks for
	chunk       = 256 << 10 // bytes of one read from a connection
	patience    = time.Minute
)

// download is the transfer of one file.
type download struct {
	*session
	file   store.File
	part   *store.Partial
	meter  *meter
	token  string
	origin *url.URL // the file's URL at the hub

	mu     sync.Mutex
	direct *url.URL // where origin has redirected to, to be used again until it expires
	taken  []bool   // by piece: claimed by a connection
}

// errNoRanges says that the server sends only whole files.
var errNoRanges = errors.New("the server sends no parts of files")

// run fetches the missing pieces, checks the checksum and closes the partial file.
func (d *download) run(ctx context.Context) error {
	defer d.part.Close()
	err := d.ranges(ctx)
	if errors.Is(err, errNoRanges) {
		err = d.whole(ctx)
	}
	if err != nil {
		return err
	}
	return d.part.Commit()
}

// ranges fetches pieces on several connections.
func (d *download) ranges(ctx context.Context) error {
	d.taken = make([]bool, d.part.Pieces())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	for range connections {
		workers.Go(func() {
			for {
				from, to := d.next()
				if from == to || ctx.Err() != nil {
					return
				}
				if err := d.pieces(ctx, from, to); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// next claims the first run of pieces that are missing and unclaimed: those from from up to, but without, to.
func (d *download) next() (from, to int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	free := func(i int) bool { return i < len(d.taken) && !d.taken[i] && !d.part.Has(i) }
	for from < len(d.taken) && !free(from) {
		from++
	}
	for to = from; free(to) && to-from < longestRun; to++ {
		d.taken[to] = true
	}
	return from, to
}

// pieces fetches the pieces from, from+1, … to-1, with one request where nothing breaks off, and one more for each
// break.
func (d *download) pieces(ctx context.Context, from, to int) error {
	at, _ := d.part.At(from)
	_, end := d.part.At(to - 1)
	for failures := 0; at < end; {
		n, err := d.stretch(ctx, at, end)
		if at += n; err == nil {
			continue
		}
		if n > 0 {
			failures = 0
		}
		if failures++; failures == tries || !temporary(err) {
			return err
		}
		if err := d.pause(ctx, failures, err); err != nil {
			return err
		}
	}
	return nil
}

// stretch fetches bytes from at on, up to end at most, and returns how many have come.
func (d *download) stretch(ctx context.Context, at, end int64) (n int64, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stalled := stalls(d.origin, d.patience, stop)
	defer stalled.Stop()
	a, err := d.open(ctx, fmt.Sprintf("bytes=%d-%d", at, end-1))
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	if err := d.fits(a, at, end); err != nil {
		return 0, err
	}
	return d.copy(ctx, &lively{a.Body, stalled, d.patience}, at, end)
}

// open requests a part of the file, or all of it if part is empty. It uses the address that an earlier request was
// redirected to, and asks the hub for a new one if that has expired.
func (d *download) open(ctx context.Context, part string) (*answer, error) {
	header := http.Header{}
	if part != "" {
		header.Set("Range", part)
	}
	d.mu.Lock()
	direct := d.direct
	d.mu.Unlock()
	if direct != nil {
		a, err := d.get(ctx, direct, d.token, header)
		if r := (*Refused)(nil); !errors.As(err, &r) || r.again() {
			return a, err
		}
	}
	a, err := d.get(ctx, d.origin, d.token, header)
	if err != nil {
		return nil, err
	}
	if err := d.linked(a.passed); err != nil {
		a.Body.Close()
		return nil, err
	}
	d.mu.Lock()
	d.direct = a.from
	d.mu.Unlock()
	return a, nil
}

// linked compares Hugging Face's headers of the file behind a redirect with the expected size and checksum.
func (d *download) linked(passed []http.Header) error {
	for _, h := range passed {
		size, tag := h.Get("X-Linked-Size"), strings.Trim(strings.TrimPrefix(h.Get("X-Linked-Etag"), "W/"), `"`)
		if size != "" && size != strconv.FormatInt(d.file.Size, 10) {
			return fmt.Errorf("%s: the hub has %.20s bytes of it now, want %d: pull again", d.file.Name, size, d.file.Size)
		}
		if digest, err := store.ParseDigest("sha256:" + tag); err == nil && digest != d.file.Digest {
			return fmt.Errorf("%s: the hub has another file of that name now (%s, want %s): pull again", d.file.Name,
				digest, d.file.Digest)
		}
	}
	return nil
}

// fits refuses an answer that is not the requested part of the file.
func (d *download) fits(a *answer, at, end int64) error {
	if a.StatusCode == http.StatusOK {
		if at == 0 && end == d.file.Size && (a.ContentLength < 0 || a.ContentLength == end) {
			return nil
		}
		return errNoRanges
	}
	var from, to, size int64
	text := a.Header.Get("Content-Range")
	n, _ := fmt.Sscanf(text, "bytes %d-%d/%d", &from, &to, &size)
	if n == 2 && strings.HasSuffix(text, "/*") {
		n, size = 3, d.file.Size
	}
	if n != 3 || from != at || to < from || size != d.file.Size {
		return fmt.Errorf("%s: sends %.60q, want bytes from %d of %d", place(a.from), text, at, d.file.Size)
	}
	return nil
}

// copy writes a body to the file, piece by piece, and returns the number of bytes.
func (d *download) copy(ctx context.Context, body io.Reader, at, end int64) (n int64, err error) {
	buffer := make([]byte, chunk)
	for piece := d.pieceAt(at); at+n < end; {
		_, to := d.part.At(piece)
		want := min(chunk, to-at-n)
		got, err := io.ReadFull(body, buffer[:want])
		if err := d.part.Write(buffer[:got], at+n); err != nil {
			return n, err
		}
		n += int64(got)
		d.meter.add(int64(got))
		if at+n == to {
			if err := d.part.Done(piece); err != nil {
				return n, err
			}
			piece++
		}
		if int64(got) < want {
			if ctx.Err() != nil {
				return n, context.Cause(ctx)
			}
			return n, &lost{place(d.origin), fmt.Errorf("the connection ended at byte %d of %d: %w", at+n, end, err)}
		}
	}
	return n, nil
}

// pieceAt returns the index of the piece with a byte.
func (d *download) pieceAt(at int64) int {
	for i := range d.part.Pieces() {
		if from, to := d.part.At(i); from <= at && at < to {
			return i
		}
	}
	return d.part.Pieces()
}

// whole fetches the file from its beginning in one request, and tries again on errors.
func (d *download) whole(ctx context.Context) error {
	for failures := 1; ; failures++ {
		n, err := d.stream(ctx)
		if err == nil || failures == tries || !temporary(err) {
			return err
		}
		d.meter.add(-n)
		if err := d.pause(ctx, failures, err); err != nil {
			return err
		}
	}
}

func (d *download) stream(ctx context.Context) (n int64, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stalled := stalls(d.origin, d.patience, stop)
	defer stalled.Stop()
	a, err := d.open(ctx, "")
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK || a.ContentLength >= 0 && a.ContentLength != d.file.Size {
		return 0, fmt.Errorf("%s: sends %d bytes with status %d, want all %d of the file with 200", place(a.from),
			a.ContentLength, a.StatusCode, d.file.Size)
	}
	if n, err = d.copy(ctx, &lively{a.Body, stalled, d.patience}, 0, d.file.Size); err != nil {
		return n, err
	}
	if more, _ := io.ReadFull(a.Body, make([]byte, 1)); more > 0 {
		return n, fmt.Errorf("%s: sends more than the %d bytes of the file", place(a.from), d.file.Size)
	}
	return n, nil
}
