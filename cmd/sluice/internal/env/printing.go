package env

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/sluice-ai/sluice/internal/mem"
)

// Printable shows text of a file on a terminal: quoted if it holds anything but printable characters, so that a
// file cannot write escape sequences.
func Printable(s string) string {
	if q := strconv.Quote(s); q[1:len(q)-1] != s {
		return q
	}
	return s
}

// Count is a number of things in words: "1 tensor", "2 tensors".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Parameters shows a count as people name models: 26.2 M, 7.24 B.
func Parameters(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f B", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	}
	return strconv.FormatInt(n, 10)
}

// BinarySize shows bytes in the largest unit of 1024 that leaves a number of 1 or more.
func BinarySize(n int64) string { return mem.Text(n) }

// PrintJSON prints one value, indented, and no HTML escapes: people read it too.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// PrintResult prints one value in a line of its own, so that the results of many runs can be read line by line.
func PrintResult(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Rate is n things in d, by the second; 0 where nothing was measured.
func Rate(n int, d time.Duration) float64 {
	if n <= 0 || d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// TokensRate shows tokens a second in three digits or so.
func TokensRate(x float64) string {
	switch {
	case x == 0:
		return "an unknown number of"
	case x < 10:
		return fmt.Sprintf("%.2f", x)
	case x < 100:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// PerSecond shows bytes a second, in powers of 1000 as drives are sold.
func PerSecond(bytes float64) string { return fmt.Sprintf("%.1f GB/s", bytes/1e9) }
