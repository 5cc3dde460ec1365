package answerfiles

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/sluice-ai/sluice/storage/sealed"
)

// Asked is an accepted request, as it is served again.
type Asked struct {
	ID     string `json:"id"`
	Owner  string `json:"owner"` // name of the client: its key's digest, or its address
	Salt   uint64 `json:"salt,omitempty"`
	Method string `json:"method"`
	Path   string `json:"path"`
	At     int64  `json:"at"` // when it came, in ns of Unix time

	Background bool `json:"background,omitempty"` // it is computed also if nobody reads it
	Store      bool `json:"store,omitempty"`      // it is kept for longer, until it is deleted

	Body string `json:"-"`
}

// Begun is what a request's answer follows from beside its text.
type Begun struct {
	Model   string   `json:"model"`             // its content, in few bytes
	Numbers string   `json:"numbers,omitempty"` // how they are computed, if the answer may go on elsewhere
	Prompts []string `json:"prompts"`           // digests of the tokens
	Seeds   []uint64 `json:"seeds"`             // by prompt
	Nonce   uint64   `json:"nonce"`             // ids that the answer contains follow from it
}

// Prob is a token with its log-probability.
type Prob struct {
	ID      int32
	LogProb float32
}

// Token is a drawn token. If Probs is set, log-probabilities are wanted of it.
type Token struct {
	Choice  int
	ID      int32
	Drift   float64 // state of sampling behind it
	Probs   bool
	LogProb float32
	Top     []Prob
}

// Counts are what a choice's client is told of its tokens.
type Counts struct {
	Choice    int           `json:"choice"`
	Prompt    int           `json:"prompt"`
	Cached    int           `json:"cached"`
	Generated int           `json:"generated,omitempty"`
	Proposed  int           `json:"proposed,omitempty"`
	Accepted  int           `json:"accepted,omitempty"`
	Queue     time.Duration `json:"queue,omitempty"`
	Prefill   time.Duration `json:"prefill,omitempty"`
	Decode    time.Duration `json:"decode,omitempty"`
}

// End is how a choice ended.
type End struct {
	Counts
	Finish string `json:"finish"`
	Stop   string `json:"stop,omitempty"`
}

// Told is what can be asked for by the answer's id.
type Told struct {
	Object string `json:"object"`          // JSON of the answer as it is now
	Items  string `json:"items,omitempty"` // the conversation that it ended, as JSON without the list's brackets
}

// kind is the kind of a record.
type kind uint8

const (
	asked     kind = iota + 1 // JSON of Asked, behind its length, and the body
	begun                     // JSON of Begun
	drawn                     // tokens
	read                      // JSON of Counts, with a choice's first token
	ended                     // JSON of End
	told                      // JSON of Told, in place of earlier ones
	closed                    // text of the fault that ended it; none: it is whole
	resumed                   // it was gone on with from here
	sealedAll                 // records, encrypted
)

// Limits of what a file may claim.
const (
	mostRecord  = 64 << 20
	mostChoices = 1 << 10
	mostTop     = 1 << 8
)

const (
	magic      = "sluicean"
	version    = 1 // of files that are not encrypted
	encrypted  = 2
	headSize   = len(magic) + 4
	recordHead = 9 // length of the payload, kind, CRC-32C of both and the payload
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendHead(dst []byte, key *sealed.Key) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, magic...), uint32(versionOf(key)))
}

func versionOf(key *sealed.Key) int {
	if key == nil {
		return version
	}
	return encrypted
}

// appendSealed appends records that stand at a place of the file of an answer: with a key, as one record of them all.
func appendSealed(dst, records []byte, key *sealed.Key, name string, at int) []byte {
	if key == nil {
		return append(dst, records...)
	}
	return appendRecord(dst, sealedAll, key.Seal(nil, records, boundOf(name, at)))
}

// boundOf says where records stand, so that none is taken for those of another answer, or of another time.
func boundOf(name string, at int) string { return fmt.Sprintf("answer %s at %d", name, at) }

// appendRecord appends a record.
func appendRecord(dst []byte, k kind, payload []byte) []byte {
	from := len(dst)
	dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(payload))), byte(k))
	sum := crc32.Update(crc32.Checksum(dst[from:], castagnoli), castagnoli, payload)
	return append(binary.LittleEndian.AppendUint32(dst, sum), payload...)
}

// errTorn ends the records of a file whose rest was not written completely, or was changed.
var errTorn = errors.New("the file ends within a record")

// nextRecord takes the first record of data.
func nextRecord(data []byte) (k kind, payload, rest []byte, err error) {
	if len(data) < recordHead {
		return 0, nil, nil, errTorn
	}
	size := binary.LittleEndian.Uint32(data)
	if size > mostRecord || int64(size) > int64(len(data)-recordHead) {
		return 0, nil, nil, errTorn
	}
	payload = data[recordHead : recordHead+int(size)]
	sum := crc32.Update(crc32.Checksum(data[:5], castagnoli), castagnoli, payload)
	if sum != binary.LittleEndian.Uint32(data[5:]) {
		return 0, nil, nil, errTorn
	}
	return kind(data[4]), payload, data[recordHead+int(size):], nil
}

func appendJSON(dst []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // they are structs of texts and numbers
	}
	return append(dst, text...)
}

func appendAsked(dst []byte, a *Asked) []byte {
	text := appendJSON(nil, a)
	return append(append(binary.AppendUvarint(dst, uint64(len(text))), text...), a.Body...)
}

func parseAsked(data []byte, a *Asked) error {
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return errTorn
	}
	a.Body = string(data[n+int(size):])
	return json.Unmarshal(data[n:n+int(size)], a)
}

// Bits of a token's head, which is followed by its number; behind them is its choice.
const (
	withDrift = 1 << iota
	withProbs
	choiceShift = iota
)

func appendToken(dst []byte, t *Token) []byte {
	head := uint64(t.Choice) << choiceShift
	if t.Drift != 0 {
		head |= withDrift
	}
	if t.Probs {
		head |= withProbs
	}
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, head), uint64(uint32(t.ID)))
	if t.Drift != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(t.Drift))
	}
	if t.Probs {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(t.LogProb))
		dst = binary.AppendUvarint(dst, uint64(len(t.Top)))
		for _, p := range t.Top {
			dst = binary.AppendUvarint(dst, uint64(uint32(p.ID)))
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(p.LogProb))
		}
	}
	return dst
}

// tokens reads tokens from the payload of a record.
type tokens struct {
	data []byte
	bad  bool
}

func (r *tokens) number(most uint64) uint64 {
	x, n := binary.Uvarint(r.data)
	if n <= 0 || x > most {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return x
}

func (r *tokens) bits(bytes int) (x uint64) {
	if len(r.data) < bytes {
		r.bad, r.data = true, nil
		return 0
	}
	for i := range bytes {
		x |= uint64(r.data[i]) << (8 * i)
	}
	r.data = r.data[bytes:]
	return x
}

func (r *tokens) next() (t Token) {
	head := r.number(mostChoices<<choiceShift - 1)
	t.Choice, t.Probs = int(head>>choiceShift), head&withProbs != 0
	t.ID = int32(r.number(math.MaxInt32))
	if head&withDrift != 0 {
		t.Drift = math.Float64frombits(r.bits(8))
	}
	if t.Probs {
		t.LogProb = math.Float32frombits(uint32(r.bits(4)))
		for n := r.number(mostTop); n > 0 && !r.bad; n-- {
			id := int32(r.number(math.MaxInt32))
			t.Top = append(t.Top, Prob{id, math.Float32frombits(uint32(r.bits(4)))})
		}
	}
	return t
}

// Past is what a file says of a request.
type Past struct {
	Asked
	Begun  *Begun // nil: nothing was computed
	Tokens []Token
	Read   map[int]Counts // by choice, with its first token
	Ended  map[int]End    // by choice
	Told   *Told          // nil: nothing can be asked for
	Closed bool           // it is whole, or Failed
	Failed string
	Tries  int // how often it was gone on with since its last token

	bytes int64 // that are whole records
	size  int64 // of the file
}

// State is how far an answer is that nobody computes.
func (p *Past) State() State {
	switch {
	case !p.Closed:
		return Open
	case p.Store:
		return Saved
	}
	return Done
}

// Pack makes the file of an answer: its request, and records that a Log collected.
func Pack(a *Asked, records []byte) []byte {
	return append(appendRecord(appendHead(nil, nil), asked, appendAsked(nil, a)), records...)
}

// Parse reads the file of an answer that is not encrypted. A torn tail is left out.
func Parse(data []byte) (*Past, error) { return parse(data, nil, "") }

// parse reads the file of an answer. A torn tail is left out; an error says that it is no file of an answer.
func parse(data []byte, key *sealed.Key, name string) (*Past, error) {
	if len(data) < headSize || string(data[:len(magic)]) != magic {
		return nil, errors.New("it is no file of an answer")
	}
	switch v := binary.LittleEndian.Uint32(data[len(magic):]); {
	case v == uint32(versionOf(key)):
	case v == encrypted:
		return nil, errors.New("it is encrypted, and there is no key")
	case v == version:
		return nil, errors.New("it is not encrypted, but there is a key")
	default:
		return nil, fmt.Errorf("it has version %d of its format: this program knows %d and %d", v, version, encrypted)
	}
	p := &Past{size: int64(len(data)), Read: map[int]Counts{}, Ended: map[int]End{}}
	rest := data[headSize:]
	for len(rest) > 0 {
		at := len(data) - len(rest)
		k, payload, behind, err := nextRecord(rest)
		if err == nil && key != nil {
			err = p.takeSealed(k, payload, key, boundOf(name, at))
		} else if err == nil {
			err = p.takeNext(k, payload)
		}
		if errors.Is(err, sealed.ErrOpen) && p.bytes == 0 {
			return nil, err // it has another key
		}
		if err != nil {
			break
		}
		rest = behind
		p.bytes = int64(len(data) - len(rest))
	}
	if p.bytes == 0 {
		return nil, errors.New("its request was not written completely")
	}
	return p, nil
}

// takeSealed adds the records that one of an encrypted file holds.
func (p *Past) takeSealed(k kind, payload []byte, key *sealed.Key, bound string) error {
	if k != sealedAll {
		return errTorn
	}
	rest, err := key.Open(payload, bound)
	for first := p.bytes == 0; err == nil && len(rest) > 0; first = false {
		if k, payload, rest, err = nextRecord(rest); err == nil && first != (k == asked) {
			err = errTorn
		}
		if err == nil {
			err = p.take(k, payload)
		}
	}
	return err
}

// takeNext adds a record, the first of which has to be the request.
func (p *Past) takeNext(k kind, payload []byte) error {
	if p.bytes == 0 && k != asked {
		return errTorn
	}
	return p.take(k, payload)
}

// take adds a record.
func (p *Past) take(k kind, payload []byte) (err error) {
	switch k {
	case asked:
		if p.bytes > 0 {
			return errTorn
		}
		return parseAsked(payload, &p.Asked)
	case begun:
		p.Begun = &Begun{}
		return json.Unmarshal(payload, p.Begun)
	case drawn:
		r, before := tokens{data: payload}, len(p.Tokens)
		for len(r.data) > 0 {
			p.Tokens = append(p.Tokens, r.next())
		}
		if p.Tries = 0; r.bad {
			p.Tokens = p.Tokens[:before]
			return errTorn
		}
	case read:
		var c Counts
		if err = json.Unmarshal(payload, &c); err == nil {
			p.Read[c.Choice] = c
		}
	case ended:
		var e End
		if err = json.Unmarshal(payload, &e); err == nil {
			p.Ended[e.Choice] = e
		}
	case told:
		p.Told = &Told{}
		return json.Unmarshal(payload, p.Told)
	case closed:
		p.Closed, p.Failed = true, string(payload)
	case resumed:
		p.Tries++
	default:
		return errTorn // of a later minor version: what follows may depend on it
	}
	return err
}
