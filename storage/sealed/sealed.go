package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Key encrypts and decrypts. A nil one does neither.
type Key struct{ secret [keySize]byte }

const (
	keySize   = 32
	saltSize  = 20 // of what a part's own key is made
	nonceSize = 12
	tagSize   = 16

	// Overhead is how many bytes a sealed part has more than what it holds.
	Overhead = saltSize + nonceSize + tagSize
)

// ErrOpen says that a part is not what was sealed, by this key and in this place.
var ErrOpen = errors.New("it was not encrypted by this key for this place, or was changed")

// Parse reads a key of 32 bytes, as 64 hexadecimal digits or as base64; of nothing it makes none. Errors do not quote
// the text.
func Parse(text string) (*Key, error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	b, err := hex.DecodeString(text)
	if err != nil {
		b, err = base64.StdEncoding.DecodeString(text)
	}
	if err != nil || len(b) != keySize {
		return nil, fmt.Errorf("%d characters are no key of %d bytes: want %d hexadecimal digits, or base64, as "+
			"`openssl rand -hex %d` makes them", len(text), keySize, 2*keySize, keySize)
	}
	return &Key{[keySize]byte(b)}, nil
}

// Over is how many bytes a part has more than what it holds: none without a key.
func (k *Key) Over() int {
	if k == nil {
		return 0
	}
	return Overhead
}

// Name is a digest of data that only who has the key can make.
func (k *Key) Name(data []byte) (name [sha256.Size]byte) {
	copy(name[:], k.derive("name", data))
	return name
}

// derive makes a secret of the key's for one use.
func (k *Key) derive(use string, of []byte) []byte {
	h := hmac.New(sha256.New, k.secret[:])
	h.Write([]byte("sluice state " + use + "\x00"))
	h.Write(of)
	return h.Sum(nil)
}

// part is the cipher of a part with a salt. Salts are random and of 160 bits, so no two parts have the same cipher and
// nonce, however many a key seals.
func (k *Key) part(salt []byte) cipher.AEAD {
	block, err := aes.NewCipher(k.derive("part", salt))
	if err == nil {
		var gcm cipher.AEAD
		if gcm, err = cipher.NewGCM(block); err == nil {
			return gcm
		}
	}
	panic(err) // the size of the key is right
}

// Seal appends what plain becomes. Only Open with the same bound returns it: bound says what the part is, and where.
// Without a key it appends plain.
func (k *Key) Seal(dst, plain []byte, bound string) []byte {
	if k == nil {
		return append(dst, plain...)
	}
	var head [saltSize + nonceSize]byte
	_, _ = rand.Read(head[:]) // it cannot fail
	return k.part(head[:saltSize]).Seal(append(dst, head[:]...), head[saltSize:], plain, []byte(bound))
}

// Open returns what a part holds, in the part's own memory, or ErrOpen. Without a key it returns the part.
func (k *Key) Open(part []byte, bound string) ([]byte, error) {
	if k == nil {
		return part, nil
	}
	if len(part) < Overhead {
		return nil, ErrOpen
	}
	salt, nonce, rest := part[:saltSize], part[saltSize:][:nonceSize], part[saltSize+nonceSize:]
	plain, err := k.part(salt).Open(rest[:0], nonce, rest, []byte(bound))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}
