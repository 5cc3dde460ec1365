package env

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes on the command line: 6G, 1.5G, 800M, 64K, or bytes.
type Size int64

// UnmarshalText takes K, M, G and T as powers of 1024, with or without iB or B behind them.
func (s *Size) UnmarshalText(text []byte) error {
	given := strings.ToUpper(string(text))
	digits := strings.TrimSuffix(strings.TrimSuffix(given, "B"), "I")
	unit := 1.0
	if n := len(digits); n > 0 {
		if power := strings.IndexByte("KMGT", digits[n-1]); power >= 0 {
			unit, digits = math.Pow(1024, float64(power+1)), digits[:n-1]
		}
	}
	x, err := strconv.ParseFloat(digits, 64)
	if bytes := x * unit; err == nil && bytes >= 1 && bytes < 1<<60 {
		*s = Size(bytes)
		return nil
	}
	return fmt.Errorf("%q is no amount of memory: want one such as 6G, 1.5G or 800M", text)
}
