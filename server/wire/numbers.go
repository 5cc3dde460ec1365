package wire

import (
	"math"
	"strconv"
)

// leastLogProb stands for −∞, which JSON lacks.
const leastLogProb = -9999

// AppendLogProb appends a log-probability (natural logarithm).
func AppendLogProb(dst []byte, p float32) []byte {
	if math.IsNaN(float64(p)) || p < leastLogProb {
		p = leastLogProb
	}
	return strconv.AppendFloat(dst, float64(min(p, math.MaxFloat32)), 'g', -1, 32)
}

// AppendProb appends a token's text with its log-probability, without the closing brace: {"token", "logprob",
// "bytes". The text may hold part of a character; bytes has it exactly.
func AppendProb(dst, piece []byte, p float32) []byte {
	dst = AppendString(append(dst, `{"token":`...), piece)
	dst = AppendLogProb(append(dst, `,"logprob":`...), p)
	dst = append(dst, `,"bytes":[`...)
	for i, b := range piece {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(b), 10)
	}
	return append(dst, ']')
}

// AppendVector appends a list of float32 numbers.
func AppendVector(dst []byte, row []float32) []byte {
	dst = append(dst, '[')
	for i, x := range row {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, float64(x), 'g', -1, 32)
	}
	return append(dst, ']')
}

// AppendTokens appends a list of token ids.
func AppendTokens(dst []byte, ids []int32) []byte {
	dst = append(dst, '[')
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(id), 10)
	}
	return append(dst, ']')
}
