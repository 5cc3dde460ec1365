package openai

import (
	"strconv"

	"github.com/sluice-ai/sluice/server/answer"
)

// appendUsage appends the usage object. Choices of one prompt share its tokens, which count once.
func appendUsage(dst []byte, choices []*answer.Choice) []byte {
	u, pondered := answer.Total(choices), 0
	for _, c := range choices {
		pondered += c.Pondered
	}
	dst = strconv.AppendInt(append(dst, `{"prompt_tokens":`...), int64(u.Prompt), 10)
	dst = strconv.AppendInt(append(dst, `,"completion_tokens":`...), int64(u.Generated), 10)
	dst = strconv.AppendInt(append(dst, `,"total_tokens":`...), int64(u.Prompt+u.Generated), 10)
	dst = strconv.AppendInt(append(dst, `,"prompt_tokens_details":{"cached_tokens":`...), int64(u.Cached), 10)
	dst = strconv.AppendInt(append(dst, `},"completion_tokens_details":{"reasoning_tokens":`...), int64(pondered), 10)
	if u.Proposed > 0 {
		dst = strconv.AppendInt(append(dst, `,"accepted_prediction_tokens":`...), int64(u.Accepted), 10)
		dst = strconv.AppendInt(append(dst, `,"rejected_prediction_tokens":`...), int64(u.Proposed-u.Accepted), 10)
	}
	return append(dst, "}}"...)
}
