package models

import (
	"fmt"
	"strings"
)

// Values counts the numbers in a tensor.
func Values(shape []int) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= int64(d)
	}
	return n
}

// ShapeText is a shape as people write it: 64 × 32.
func ShapeText(shape []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", " × "), "[]")
}
