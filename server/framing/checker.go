package framing

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrFraming is wrapped by all errors of Check.
var ErrFraming = errors.New("the request is not framed as RFC 9112 has it")

func fault(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFraming, fmt.Sprintf(format, args...))
}

// Limits of parts that have no limit elsewhere, in bytes. The HTTP reader bounds headers.
const (
	maxLine    = 64 << 10
	maxChunk   = 1 << 10 // of the line with a chunk's size
	maxTrailer = 16 << 10
	maxBlank   = 4 // empty lines before a request; not bytes
)

type state uint8

const (
	requestLine state = iota
	headerLine
	body
	chunkLine
	chunkData
	chunkEnd
	trailerLine
)

// Checker follows the requests on one connection. The zero value is at the beginning of the first request.
type Checker struct {
	state state
	line  []byte // bytes of the current line so far, its CR included
	blank int    // empty lines before the request

	left     int64 // bytes of the body or chunk that have not come
	trailers int   // bytes of the trailer so far

	old     bool // HTTP/1.0
	length  bool // the header has Content-Length
	chunked bool
}

// Between reports whether no byte of a next request has come.
func (c *Checker) Between() bool { return c.state == requestLine && len(c.line) == 0 && c.blank == 0 }

// Check takes the next bytes of a connection, and returns the number of those that are framed correctly: all of them
// if the error is nil. After an error it must not be called again.
func (c *Checker) Check(b []byte) (good int, err error) {
	for good < len(b) {
		switch c.state {
		case body, chunkData:
			n := min(c.left, int64(len(b)-good))
			good += int(n)
			if c.left -= n; c.left == 0 && c.state == body {
				c.next()
			} else if c.left == 0 {
				c.state = chunkEnd
			}
			continue
		}
		x := b[good]
		if x != '\n' {
			if len(c.line) > 0 && c.line[len(c.line)-1] == '\r' {
				return good, fault("a carriage return without a line feed")
			}
			if c.line = append(c.line, x); len(c.line) > c.most() {
				return good, fault("a line of more than %d bytes", c.most())
			}
			good++
			continue
		}
		n := len(c.line)
		if n == 0 || c.line[n-1] != '\r' {
			return good, fault("a line feed without a carriage return")
		}
		if err := c.take(string(c.line[:n-1])); err != nil {
			return good, err
		}
		c.line = c.line[:0]
		good++
	}
	return good, nil
}

func (c *Checker) most() int {
	if c.state == chunkLine || c.state == chunkEnd {
		return maxChunk
	}
	return maxLine
}

// next resets the checker to the beginning of the next request.
func (c *Checker) next() { *c = Checker{line: c.line[:0]} }

// take takes a whole line, without its line end.
func (c *Checker) take(line string) error {
	switch c.state {
	case requestLine:
		return c.request(line)
	case headerLine:
		if line == "" {
			return c.headerEnd()
		}
		return c.header(line)
	case chunkLine:
		return c.chunk(line)
	case chunkEnd:
		if line != "" {
			return fault("a chunk is longer than its size")
		}
		c.state = chunkLine
	case trailerLine:
		if line == "" {
			c.next()
			return nil
		}
		if c.trailers += len(line); c.trailers > maxTrailer {
			return fault("a trailer of more than %d bytes", maxTrailer)
		}
		_, _, err := field(line)
		return err
	}
	return nil
}

func (c *Checker) request(line string) error {
	if line == "" {
		if c.blank++; c.blank > maxBlank {
			return fault("more than %d empty lines before a request", maxBlank)
		}
		return nil
	}
	parts := strings.Split(line, " ")
	if len(parts) != 3 || !token(parts[0]) || !visible(parts[1]) {
		return fault("the request line is not a method, a target and a version")
	}
	switch parts[2] {
	case "HTTP/1.1":
	case "HTTP/1.0":
		c.old = true
	default:
		return fault("the version is %.20q: want HTTP/1.1 or HTTP/1.0", parts[2])
	}
	c.state = headerLine
	return nil
}

func (c *Checker) header(line string) error {
	name, value, err := field(line)
	if err != nil {
		return err
	}
	switch {
	case strings.EqualFold(name, "Content-Length"):
		if c.length {
			return fault("Content-Length is there twice")
		}
		c.length = true
		if c.left, err = number(value, 10); err != nil {
			return fault("Content-Length is %.20q: want a number", value)
		}
	case strings.EqualFold(name, "Transfer-Encoding"):
		if c.chunked {
			return fault("Transfer-Encoding is there twice")
		}
		if !strings.EqualFold(value, "chunked") {
			return fault("Transfer-Encoding is %.20q: want chunked", value)
		}
		c.chunked = true
	}
	return nil
}

func (c *Checker) headerEnd() error {
	switch {
	case c.length && c.chunked:
		return fault("there are both Content-Length and Transfer-Encoding")
	case c.chunked && c.old:
		return fault("HTTP/1.0 has no Transfer-Encoding")
	case c.chunked:
		c.state = chunkLine
	case c.left > 0:
		c.state = body
	default:
		c.next()
	}
	return nil
}

func (c *Checker) chunk(line string) error {
	size, extension, extended := strings.Cut(line, ";")
	n, err := number(size, 16)
	if err != nil {
		return fault("the size of a chunk is %.20q: want a hexadecimal number", size)
	}
	if extended && !text(extension) {
		return fault("a chunk's extension has a control character")
	}
	c.left, c.state = n, chunkData
	if n == 0 {
		c.state = trailerLine
	}
	return nil
}

// number parses digits and nothing else.
func number(s string, base int) (int64, error) {
	if s == "" || s[0] == '+' || s[0] == '-' || strings.Contains(s, "_") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(s, base, 63)
}

// field splits a header's line into name and value.
func field(line string) (name, value string, err error) {
	if line[0] == ' ' || line[0] == '\t' {
		return "", "", fault("a header goes on in a second line")
	}
	name, value, found := strings.Cut(line, ":")
	switch {
	case !found:
		return "", "", fault("a header has no colon")
	case !token(name):
		return "", "", fault("a header's name is %.40q: no spaces or separators belong there", name)
	case !text(value):
		return "", "", fault("the header %.40q has a control character", name)
	}
	return name, strings.Trim(value, " \t"), nil
}

// token reports whether s is a token of RFC 9110, 5.6.2.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		alphanumeric := c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !alphanumeric && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// visible reports whether s is not empty and has no spaces and no control characters.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7F {
			return false
		}
	}
	return s != ""
}

// text reports whether s has no control characters but tabs.
func text(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7F {
			return false
		}
	}
	return true
}
