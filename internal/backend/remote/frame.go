package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// protocol is the format of all that travels; a lender of another one is refused.
const protocol = 1

// kind says what a frame is: what is asked, and by the same kind what is answered.
type kind uint8

const (
	kindAlive   kind = iota + 1 // nothing: its sender is there
	kindGreet                   // greeting, answered by one
	kindProbe                   // bytes, answered by none
	kindCompile                 // job, answered by terms
	kindUpload                  // rows of a weight
	kindStep                    // a step or some of it
	kindCarry                   // blocks to memory or back
	kindCopy                    // a block to another one
	kindClose                   // the model is closed
	lastKind
)

// most is how long the body of a frame may be, by kind. Rows of a step are a model's to bound, and those of a weight an
// uploader's: no machine has slabs or steps that are larger.
var most = [lastKind]int{kindGreet: 64 << 10, kindProbe: 4 << 20, kindCompile: 64 << 20, kindUpload: 1 << 30,
	kindStep: 1 << 30, kindCarry: 1 << 30, kindCopy: 1 + mostFault, kindClose: 1 + mostFault}

const headerBytes = 5

// first is how much memory a frame is believed to be worth before its bytes have come.
const first = 1 << 20

// frame is the beginning of a frame of a kind, for send; its body is appended.
func frame(memory []byte, k kind) []byte { return append(memory[:0], 0, 0, 0, 0, byte(k)) }

// seal writes the length of a frame that is complete.
func seal(f []byte) ([]byte, error) {
	n := len(f) - headerBytes
	if k := kind(f[4]); n > most[k] {
		return nil, fmt.Errorf("a message of %d bytes to a member, want at most %d: have it compute fewer rows at once", n,
			most[k])
	}
	binary.LittleEndian.PutUint32(f, uint32(n))
	return f, nil
}

// receive reads a frame. Its body is in memory, or in larger memory, which it returns as well and which grows as bytes
// come.
func receive(r io.Reader, memory []byte) (k kind, body, larger []byte, err error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, memory, err
	}
	k, n := kind(header[4]), int64(binary.LittleEndian.Uint32(header[:]))
	if k == 0 || k >= lastKind || n > int64(most[k]) {
		return 0, nil, memory, fmt.Errorf("%w: kind %d of %d bytes", errGarbage, k, n)
	}
	memory = memory[:cap(memory)]
	for have := int64(0); have < n; {
		if have == int64(len(memory)) {
			memory = append(memory, make([]byte, min(n-have, max(have, first)))...)
		}
		to := min(n, int64(len(memory)))
		if _, err := io.ReadFull(r, memory[have:to]); err != nil {
			return 0, nil, memory, fmt.Errorf("a message ends after %d bytes at least: %w", have, err)
		}
		have = to
	}
	return k, memory[:n], memory, nil
}

// errGarbage is what bytes are that no member sends.
var errGarbage = errors.New("what came is no message of this protocol")
