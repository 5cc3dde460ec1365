package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
)

const hex = "0123456789abcdef"

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD, as in encoding/json. All line
// breaks are escaped, so that the result is one line of an event.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			if escaped := wideEscape(r, n); escaped != "" {
				dst = append(append(dst, s[from:i]...), escaped...)
				from = i + n
			}
			i += n
			continue
		}
		if b < ' ' || b == '"' || b == '\\' || b == 0x7F {
			dst = appendEscape(append(dst, s[from:i]...), b)
			from = i + 1
		}
		i++
	}
	return append(append(dst, s[from:]...), '"')
}

// wideEscape returns the escape of a character beyond ASCII; "" if it needs none.
func wideEscape(r rune, n int) string {
	switch {
	case r == utf8.RuneError && n == 1:
		return `\ufffd`
	case r == '\u2028':
		return `\u2028` // line breaks in JavaScript
	case r == '\u2029':
		return `\u2029`
	}
	return ""
}

func appendEscape(dst []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
}

// WriteJSON answers with a value that cannot fail to be encoded.
func WriteJSON(rc *fasthttp.RequestCtx, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	rc.SetContentType("application/json")
	rc.SetBody(body)
}

// AppendObject appends a JSON object on one line. An incomplete one, as of an answer that was cut, becomes an empty
// object.
func AppendObject(dst, text []byte) []byte {
	out := bytes.NewBuffer(dst)
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) || json.Compact(out, text) != nil {
		return append(dst, "{}"...)
	}
	return out.Bytes()
}

// AppendReading appends a comment of an event stream, which says how far a prompt was read, in tokens. Programs ignore
// comments, and learn from them that the server is at work.
func AppendReading(dst []byte, done, total int) []byte {
	dst = strconv.AppendInt(append(dst, ": reading the prompt, "...), int64(done), 10)
	return append(strconv.AppendInt(append(dst, " of "...), int64(total), 10), " tokens\n\n"...)
}

// AppendProgress appends the member prompt_progress, as llama.cpp's server has it: tokens, and the time it took so far.
func AppendProgress(dst []byte, total, cached, done int, since time.Duration) []byte {
	for _, n := range []struct {
		key   string
		value int64
	}{{`,"prompt_progress":{"total":`, int64(total)}, {`,"cache":`, int64(cached)}, {`,"processed":`, int64(done)},
		{`,"time_ms":`, since.Milliseconds()}} {
		dst = strconv.AppendInt(append(dst, n.key...), n.value, 10)
	}
	return append(dst, '}')
}
