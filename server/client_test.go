package server

import (
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"
)

func capital(country string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:       "whatever",
		Messages:    []openai.ChatCompletionMessageParamUnion{openai.UserMessage("What is the capital of " + country + "?")},
		Temperature: openai.Float(0),
	}
}

// TestOfficialClient asks with OpenAI's own client, as programs do.
func TestOfficialClient(t *testing.T) {
	r := start(t, Options{}, nil)
	client := r.client()
	const paris = "The capital of France is Paris."

	t.Run("chat", func(t *testing.T) {
		answer, err := client.Chat.Completions.New(t.Context(), capital("France"))
		require.NoError(t, err)
		require.Len(t, answer.Choices, 1)
		require.Equal(t, paris, answer.Choices[0].Message.Content)
		require.Equal(t, "stop", answer.Choices[0].FinishReason)
		require.EqualValues(t, 16, answer.Usage.PromptTokens)
		require.EqualValues(t, 10, answer.Usage.CompletionTokens)
		require.EqualValues(t, 26, answer.Usage.TotalTokens)
		require.Equal(t, r.engine.Info.Name, answer.Model)
	})
	t.Run("stream", func(t *testing.T) {
		p := capital("France")
		p.StreamOptions.IncludeUsage = openai.Bool(true)
		stream := client.Chat.Completions.NewStreaming(t.Context(), p)
		var sum openai.ChatCompletionAccumulator
		for stream.Next() {
			require.True(t, sum.AddChunk(stream.Current()))
		}
		require.NoError(t, stream.Err())
		require.Equal(t, paris, sum.Choices[0].Message.Content)
		require.Equal(t, "stop", sum.Choices[0].FinishReason)
		require.EqualValues(t, 26, sum.Usage.TotalTokens)
	})
	t.Run("choices differ by seed", func(t *testing.T) {
		p := capital("France")
		p.N, p.Seed, p.Temperature, p.MaxTokens = openai.Int(3), openai.Int(7), openai.Float(3), openai.Int(12)
		flat := []option.RequestOption{
			option.WithJSONSet("min_p", 0), option.WithJSONSet("top_k", 0), option.WithJSONSet("top_p", 1),
		}
		answer, err := client.Chat.Completions.New(t.Context(), p, flat...)
		require.NoError(t, err)
		require.Len(t, answer.Choices, 3)
		require.NotEqual(t, answer.Choices[0].Message.Content, answer.Choices[1].Message.Content)
		p.N, p.Seed = openai.Int(1), openai.Int(9)
		alone, err := client.Chat.Completions.New(t.Context(), p, flat...)
		require.NoError(t, err)
		require.Equal(t, answer.Choices[2].Message.Content, alone.Choices[0].Message.Content, "choice i has seed + i")
	})
	t.Run("log-probabilities", func(t *testing.T) {
		p := capital("France")
		p.Logprobs, p.TopLogprobs = openai.Bool(true), openai.Int(2)
		answer, err := client.Chat.Completions.New(t.Context(), p)
		require.NoError(t, err)
		text := ""
		for _, token := range answer.Choices[0].Logprobs.Content {
			require.Len(t, token.TopLogprobs, 2)
			require.Equal(t, token.Token, token.TopLogprobs[0].Token, "greedy")
			require.Equal(t, token.Logprob, token.TopLogprobs[0].Logprob)
			require.Len(t, token.Bytes, len(token.Token))
			text += token.Token
		}
		require.Equal(t, paris, text, "the end token is left out")
	})
	t.Run("stop and length", func(t *testing.T) {
		p := capital("France")
		p.Stop.OfStringArray = []string{"nowhere", "is Par"}
		answer, err := client.Chat.Completions.New(t.Context(), p)
		require.NoError(t, err)
		require.Equal(t, "The capital of France ", answer.Choices[0].Message.Content)
		require.Equal(t, "stop", answer.Choices[0].FinishReason)
		p = capital("France")
		p.MaxCompletionTokens = openai.Int(2)
		answer, err = client.Chat.Completions.New(t.Context(), p)
		require.NoError(t, err)
		require.Equal(t, "The capital", answer.Choices[0].Message.Content)
		require.Equal(t, "length", answer.Choices[0].FinishReason)
	})
	t.Run("completions", func(t *testing.T) {
		p := openai.CompletionNewParams{Model: "x", Temperature: openai.Float(0), MaxTokens: openai.Int(4)}
		p.Logprobs = openai.Int(2)
		p.Prompt.OfArrayOfStrings = []string{"The capital of", "one two three"}
		answer, err := client.Completions.New(t.Context(), p)
		require.NoError(t, err)
		require.Len(t, answer.Choices, 2)
		require.Len(t, answer.Choices[1].Logprobs.Tokens, 4)
		require.Len(t, answer.Choices[1].Logprobs.TopLogprobs[0], 2)
		p.Prompt.OfArrayOfStrings, p.Prompt.OfString = nil, openai.String("one two three")
		stream := client.Completions.NewStreaming(t.Context(), p)
		text := ""
		for stream.Next() {
			text += stream.Current().Choices[0].Text
		}
		require.NoError(t, stream.Err())
		require.Equal(t, answer.Choices[1].Text, text)
	})
	t.Run("text_offset", func(t *testing.T) {
		p := openai.CompletionNewParams{Model: "x", Temperature: openai.Float(0), MaxTokens: openai.Int(12)}
		p.Logprobs = openai.Int(0)
		p.Prompt.OfArrayOfStrings = []string{"The capital of", "one two three"}
		answer, err := client.Completions.New(t.Context(), p)
		require.NoError(t, err)
		for _, c := range answer.Choices {
			requireOffsets(t, 12, c.Logprobs.Tokens, c.Logprobs.TextOffset)
		}
		p.Prompt.OfArrayOfStrings, p.Prompt.OfString = nil, openai.String("one two three")
		var tokens []string
		var offsets []int64
		stream := client.Completions.NewStreaming(t.Context(), p)
		for stream.Next() {
			probs := stream.Current().Choices[0].Logprobs
			tokens, offsets = append(tokens, probs.Tokens...), append(offsets, probs.TextOffset...)
		}
		require.NoError(t, stream.Err())
		requireOffsets(t, 12, tokens, offsets)
	})
	t.Run("models", func(t *testing.T) {
		models, err := client.Models.List(t.Context())
		require.NoError(t, err)
		require.Len(t, models.Data, 1)
		model, err := client.Models.Get(t.Context(), models.Data[0].ID)
		require.NoError(t, err)
		require.Equal(t, r.engine.Info.Name, model.ID)
		_, err = client.Models.Get(t.Context(), "another")
		requireError(t, err, 404, "model_not_found", "model")
	})
	t.Run("errors", func(t *testing.T) {
		p := capital("France")
		p.Temperature = openai.Float(-1)
		_, err := client.Chat.Completions.New(t.Context(), p)
		requireError(t, err, 400, "invalid_value", "temperature")
		stream := client.Chat.Completions.NewStreaming(t.Context(), p)
		require.False(t, stream.Next())
		requireError(t, stream.Err(), 400, "invalid_value", "temperature")
	})
}

// requireOffsets: a token begins where those before it end.
func requireOffsets(t *testing.T, n int, tokens []string, offsets []int64) {
	t.Helper()
	require.Len(t, tokens, n)
	require.Len(t, offsets, n)
	at := 0
	for i, token := range tokens {
		require.EqualValues(t, at, offsets[i], "token %d of %q", i, tokens)
		at += utf8.RuneCountInString(token)
	}
}

func requireError(t *testing.T, err error, status int, code, param string) {
	t.Helper()
	var e *openai.Error
	require.True(t, errors.As(err, &e), "%v", err)
	require.Equal(t, status, e.StatusCode)
	require.Equal(t, "invalid_request_error", e.Type)
	require.Equal(t, code, e.Code)
	require.Equal(t, param, e.Param)
	require.NotEmpty(t, e.Message)
}
