package schema

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestNumbers compares bounds and multiples with exact arithmetic.
func TestNumbers(t *testing.T) {
	number := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign") +
			rapid.SampledFrom([]string{"0", "1", "9", "10", "19", "20", "99", "100", "105", "123"}).Draw(t, "whole") +
			rapid.SampledFrom([]string{"", ".0", ".5", ".05", ".50", ".49", ".499", ".501", ".125"}).Draw(t, "part")
	})
	rat := func(s string) *big.Rat {
		r, ok := new(big.Rat).SetString(s)
		require.True(t, ok)
		return r
	}
	rapid.Check(t, func(t *rapid.T) {
		bound, text := number.Draw(t, "bound"), number.Draw(t, "text")
		x, b := rat(text), rat(bound)
		want := map[string]bool{
			"minimum": x.Cmp(b) >= 0, "exclusiveMinimum": x.Cmp(b) > 0,
			"maximum": x.Cmp(b) <= 0, "exclusiveMaximum": x.Cmp(b) < 0,
			"const": x.Cmp(b) == 0,
		}
		if b.Sign() > 0 {
			want["multipleOf"] = new(big.Rat).Quo(x, b).IsInt()
		}
		for k, valid := range want {
			schema := fmt.Sprintf(`{"type":"number",%q:%s}`, k, bound)
			p, err := program(schema, Options{})
			if err != nil { // more digits than multiples may have
				require.Equal(t, "multipleOf", k, err)
				continue
			}
			accept, _, err := p.Matcher().Check(text)
			require.NoError(t, err)
			require.Equal(t, valid, accept, "%s: %s", schema, text)
		}
	})
}
