package store

import "strings"

// preferred lists the tags to choose from if a name has none, the best compromise first: latest, quantisations of
// about four bits, then of more, then of fewer, then files that are not quantised.
var preferred = []string{
	latest, "Q4_K_M", "Q4_K_S", "Q4_K_L", "IQ4_XS", "IQ4_NL", "MXFP4", "Q4_0", "Q4_1",
	"Q5_K_M", "Q5_K_S", "Q5_0", "Q5_1", "Q6_K", "Q8_0",
	"Q3_K_L", "Q3_K_M", "IQ3_M", "Q3_K_S", "IQ3_S", "IQ3_XS", "IQ3_XXS", "Q2_K", "IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS",
	"IQ1_M", "IQ1_S", "TQ2_0", "TQ1_0", "BF16", "F16", "F32",
}

// Prefer returns the index of the tag to take if a name has none: the first of preferred that is there, else 0. There
// must be at least one tag.
func Prefer(tags []string) int {
	for _, want := range preferred {
		for i, tag := range tags {
			if strings.EqualFold(tag, want) {
				return i
			}
		}
	}
	return 0
}
