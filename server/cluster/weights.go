package cluster

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/internal/pass"
	"github.com/sluice-ai/sluice/internal/source"
)

// WeightsPath is where a member lends the files of its models: ?model=NAME tells of them (Weights), and with
// &content=…&part=N and a Range the answer is those bytes, and behind them their CRC-32C, little-endian.
const WeightsPath = "/cluster/weights"

// Bounds of ranges, and of what a member believes of another's files.
const (
	MostRange   = 16 << 20 // bytes of a part that are asked for at once
	mostTold    = 64 << 10 // bytes of what is told of files
	mostParts   = 1000
	mostBytes   = 1 << 50 // of a part
	mostHead    = 1 << 30 // of them, before its first tensor
	mostContent = 128     // characters
)

// Weights is what a member tells of the files of a model.
type Weights struct {
	Content string        `json:"content"` // tells the model from others, alike on all machines
	Parts   []WeightsPart `json:"parts"`
}

// WeightsPart is one of the files: its bytes, and how many stand before its first tensor.
type WeightsPart struct {
	Bytes int64 `json:"bytes"`
	Head  int64 `json:"head"`
}

// ReadWeights reads what a member tells of files, and refuses what no member says.
func ReadWeights(r io.Reader) (*Weights, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostTold+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostTold {
		return nil, fmt.Errorf("it tells more than %d bytes of the files", mostTold)
	}
	w := new(Weights)
	if err := json.Unmarshal(text, w); err != nil {
		return nil, fmt.Errorf("what it tells of the files is not JSON as we know it: %w", err)
	}
	switch {
	case w.Content == "" || len(w.Content) > mostContent:
		return nil, fmt.Errorf("it tells the content by %d characters: want 1 to %d", len(w.Content), mostContent)
	case len(w.Parts) == 0 || len(w.Parts) > mostParts:
		return nil, fmt.Errorf("it tells of %d files: want 1 to %d", len(w.Parts), mostParts)
	}
	for i, p := range w.Parts {
		if p.Bytes < 1 || p.Bytes > mostBytes || p.Head < 1 || p.Head > min(p.Bytes, mostHead) {
			return nil, fmt.Errorf("file %d has %d bytes, of which %d come before its tensors: want 1 to %d, and 1 to %d of them",
				i+1, p.Bytes, p.Head, int64(mostBytes), mostHead)
		}
	}
	return w, nil
}

// ParseRange reads a Range of one part: bytes=FIRST-LAST, within a file of so many bytes.
func ParseRange(text string, size int64) (from, n int64, err error) {
	first, last, found := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
	from, errFirst := strconv.ParseInt(first, 10, 64)
	end, errLast := strconv.ParseInt(last, 10, 64)
	switch {
	case !found || !strings.HasPrefix(text, "bytes=") || errFirst != nil || errLast != nil:
		return 0, 0, fmt.Errorf("the range is %.80q: want bytes=FIRST-LAST", text)
	case from < 0 || end < from || end >= size:
		return 0, 0, fmt.Errorf("the range is %.80q: the file has bytes 0 to %d", text, size-1)
	case end-from >= MostRange:
		return 0, 0, fmt.Errorf("the range is %.80q: want at most %d bytes", text, MostRange)
	}
	return from, end - from + 1, nil
}

// Sum is the checksum of ranges, CRC-32C; it goes on from another one, 0 at first.
func Sum(before uint32, data []byte) uint32 { return crc32.Update(before, castagnoli, data) }

// SumBytes is the length of a checksum.
const SumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	refusals = 50 // of a range, while others have all places
	placeIn  = 100 * time.Millisecond
)

// ErrBusy says that a member lends as much as it does at once.
var ErrBusy = errors.New("it lends to as many as it does at once")

// Lender is a member that has the files of a model.
type Lender struct {
	Weights
	Member, Model string
	of            *Cluster
}

// Lender finds a member, and hears of the files of one of its models. It waits for the member until ctx ends;
// meanwhile Run finds it.
func (c *Cluster) Lender(ctx context.Context, member, model string) (*Lender, error) {
	l := &Lender{Member: member, Model: model, of: c}
	for c.addrOf(member) == "" {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("no member %q is heard of: is it running, and does --join lead to the cluster?", member)
		case <-time.After(beat / 10):
		}
	}
	answer, err := l.get(ctx, url.Values{"model": {model}}, "")
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", member, err)
	}
	defer answer.Body.Close()
	w, err := ReadWeights(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", member, err)
	}
	l.Weights = *w
	return l, nil
}

// addrOf is where a member was heard of last; "": nowhere.
func (c *Cluster) addrOf(member string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for addr, p := range c.peers {
		if p.member == member {
			return addr
		}
	}
	return ""
}

// get asks the member; an answer of any other member, or that is none, is an error.
func (l *Lender) get(ctx context.Context, query url.Values, rng string) (*http.Response, error) {
	addr := l.of.addrOf(l.Member)
	if addr == "" {
		return nil, errors.New("it is not heard of any more")
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+addr+WeightsPath+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	if rng != "" {
		q.Header.Set("Range", rng)
	}
	answer, err := l.of.Do(q)
	if err != nil {
		return nil, err
	}
	is, want := pass.MemberOf(answer.TLS), http.StatusOK
	if rng != "" {
		want = http.StatusPartialContent
	}
	switch {
	case is != l.Member:
		err = fmt.Errorf("at %s is %q now", addr, is)
	case answer.StatusCode == http.StatusServiceUnavailable:
		err = ErrBusy
	case answer.StatusCode != want:
		err = fmt.Errorf("it answers %d: %s", answer.StatusCode, saidIn(answer.Body))
	}
	if err != nil {
		_ = answer.Body.Close() // nothing more is wanted of it
		return nil, err
	}
	return answer, nil
}

// saidIn is the text of a fault.
func saidIn(body io.Reader) string {
	var said struct{ Error struct{ Message string } }
	text, _ := io.ReadAll(io.LimitReader(body, 4<<10))
	_ = json.Unmarshal(text, &said) // without words, the status has to do
	return fmt.Sprintf("%.300s", said.Error.Message)
}

// Read reads bytes of a part, and compares their checksum. A member that lends to others already is asked again.
func (l *Lender) Read(ctx context.Context, part int, into []byte, from int64) error {
	for len(into) > 0 {
		n := min(len(into), MostRange)
		err := l.read(ctx, part, into[:n], from)
		for range refusals {
			if !errors.Is(err, ErrBusy) {
				break
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(placeIn):
			}
			err = l.read(ctx, part, into[:n], from)
		}
		if err != nil {
			return fmt.Errorf("member %s: %w", l.Member, err)
		}
		into, from = into[n:], from+int64(n)
	}
	return nil
}

func (l *Lender) read(ctx context.Context, part int, into []byte, from int64) error {
	w := watch(ctx)
	defer w.Close()
	answer, err := l.get(w.ctx, url.Values{"model": {l.Model}, "content": {l.Content}, "part": {strconv.Itoa(part)}},
		fmt.Sprintf("bytes=%d-%d", from, from+int64(len(into))-1))
	if err != nil {
		return cause(w.ctx, err)
	}
	w.body = answer.Body
	if n, err := io.ReadFull(w, into); err != nil {
		return fmt.Errorf("%d of %d bytes came: %w", n, len(into), err)
	}
	var sum [SumBytes]byte
	if _, err := io.ReadFull(w, sum[:]); err != nil {
		return fmt.Errorf("the checksum did not come: %w", err)
	}
	if is, said := Sum(0, into), binary.LittleEndian.Uint32(sum[:]); is != said {
		return fmt.Errorf("the checksum of bytes %d to %d is %08x, and not %08x as it says", from, from+int64(len(into)), is, said)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(w, 1)) // its end, so that the connection is used again
	return nil
}

// Copies are the parts as sources that are read from the member each time, beside files of this machine.
func (l *Lender) Copies() (all []source.Source) {
	for i, p := range l.Parts {
		name := fmt.Sprintf("%s%s/%s part %d", Scheme, l.Member, l.Model, i+1)
		all = append(all, source.Source{Name: name, Path: name, Size: p.Bytes, Remote: &afar{l, i}})
	}
	return all
}

// afar is a part that stays where it is.
type afar struct {
	of   *Lender
	part int
}

// ReadAt implements io.ReaderAt.
func (a *afar) ReadAt(b []byte, from int64) (int, error) {
	if err := a.of.Read(context.Background(), a.part, b, from); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Here implements source.Remote.
func (*afar) Here() bool { return false }

// Scheme begins the address of a model that a member has: member://MEMBER/MODEL.
const Scheme = "member://"

// ParseAddress reads the address of a model that a member has; it returns false for what begins otherwise.
func ParseAddress(text string) (member, model string, ok bool, err error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	if !ok {
		return "", "", false, nil
	}
	member, model, _ = strings.Cut(rest, "/")
	if member == "" || model == "" {
		return "", "", true, fmt.Errorf("%.300q names no model of a member: want %sMEMBER/MODEL", text, Scheme)
	}
	return member, model, true, nil
}
