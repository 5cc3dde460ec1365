package carry

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// An answer is parted into events; each ends with a blank line, or, where an event is a line, with that. Before events
// of a slot, which is one choice's or the answer's end, stands a mark: a comment with the slot, the number of slots and
// the records that were made since the last mark.
const (
	prefix = ":sluice "
	blank  = "\n\n"
	line   = "\n"
)

// Bounds of what one member believes of another.
const (
	mostSlots   = 1 << 11
	mostEvent   = 16 << 20 // bytes
	mostRecords = 4 << 20  // bytes of one answer; more are not kept
)

// End ends an event of a stream whose events are lines, or others.
func End(lines bool) string {
	if lines {
		return line
	}
	return blank
}

// Mark appends the mark of the events that follow: those of a slot, one of so many.
func Mark(dst []byte, slot, slots int, records []byte, lines bool) []byte {
	dst = strconv.AppendInt(append(dst, prefix...), int64(slot), 10)
	dst = strconv.AppendInt(append(dst, '/'), int64(slots), 10)
	dst = base64.StdEncoding.AppendEncode(append(dst, ' '), records)
	return append(dst, End(lines)...)
}

// Kept is what a member that passes an answer on knows of it.
type Kept struct {
	Records []byte
	Seen    []int // events that were passed on, by slot; nil: none was

	over     bool // there were more records than are kept
	unmarked bool // events were passed on of which nothing is known
	lines    bool
	slot     int    // whose events come
	pending  []byte // the begin of an event, or of a mark
	looked   int    // how much of it has no end
}

// New keeps the records of an answer of which nothing came yet.
func New(lines bool) *Kept { return &Kept{lines: lines, slot: -1} }

// Anew forgets what a member sent whose last event did not come whole: another one begins.
func (k *Kept) Anew() { k.pending, k.looked, k.slot = nil, 0, -1 }

// Known says that the answer can be gone on with: from its records, or, if nothing of it was passed on, from nothing.
func (k *Kept) Known() bool { return !k.over && (k.Seen != nil || !k.unmarked) }

// Whole says that no event is begun.
func (k *Kept) Whole() bool { return len(k.pending) == 0 }

// Take appends to dst the events that are whole with these bytes, without marks.
func (k *Kept) Take(dst, came []byte) ([]byte, error) {
	end := []byte(End(k.lines))
	k.pending = append(k.pending, came...)
	rest := k.pending
	for {
		at := bytes.Index(rest[k.looked:], end)
		if at < 0 {
			break
		}
		event := rest[:k.looked+at+len(end)]
		rest, k.looked = rest[len(event):], 0
		if bytes.HasPrefix(event, []byte(prefix)) {
			if err := k.mark(event[len(prefix) : len(event)-len(end)]); err != nil {
				return dst, err
			}
			continue
		}
		dst = append(dst, event...)
		switch {
		case event[0] == ':':
		case k.slot < 0:
			k.unmarked = true
		default:
			k.Seen[k.slot]++
		}
	}
	k.looked = max(0, len(rest)-len(end)+1)
	if len(rest) > mostEvent {
		return dst, fmt.Errorf("an event has more than %d bytes", mostEvent)
	}
	k.pending = append(k.pending[:0], rest...)
	return dst, nil
}

var errMark = errors.New("a mark of its stream is not as we know it: is it of another version of the program?")

// mark takes a mark.
func (k *Kept) mark(text []byte) error {
	where, records, ok := bytes.Cut(text, []byte(" "))
	slot, slots, both := bytes.Cut(where, []byte("/"))
	s, err := strconv.ParseUint(string(slot), 10, 31)
	n, wrong := strconv.ParseUint(string(slots), 10, 31)
	if !ok || !both || err != nil || wrong != nil || s >= n || n > mostSlots || k.Seen != nil && len(k.Seen) != int(n) {
		return errMark
	}
	if k.Seen == nil {
		k.Seen = make([]int, n)
	}
	k.slot = int(s)
	if k.over {
		return nil
	}
	before := len(k.Records)
	k.Records, err = base64.StdEncoding.AppendDecode(k.Records, records)
	if err != nil {
		k.Records = k.Records[:before]
		return errMark
	}
	if len(k.Records) > mostRecords {
		k.over, k.Records = true, nil
	}
	return nil
}

// AppendSeen writes the numbers of events that a client has, as ParseSeen reads them; "": it has none.
func AppendSeen(dst []byte, seen []int) []byte {
	for i, n := range seen {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	return dst
}

// ParseSeen reads the numbers of events that a client has.
func ParseSeen(text string) (seen []int, ok bool) {
	for text != "" {
		number, rest, more := strings.Cut(text, "-")
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || len(seen) == mostSlots || more && rest == "" {
			return nil, false
		}
		seen, text = append(seen, int(n)), rest
	}
	return seen, true
}
