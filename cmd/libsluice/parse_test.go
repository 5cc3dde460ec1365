package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice"
)

// TestParse: each member reaches its field.
func TestParse(t *testing.T) {
	o, err := parseOptions(`{"context": 1, "memory": 2, "vram": 3, "device": "cpu", "threads": 4, "kv": "q8", "sequences": 5}`)
	require.NoError(t, err)
	require.Equal(t, sluice.Options{Context: 1, Memory: 2, VRAM: 3, Device: "cpu", Threads: 4, KV: "q8", Sequences: 5}, o)
	o, err = parseOptions("")
	require.NoError(t, err)
	require.Zero(t, o)

	r, err := parseRequest(`{"messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}], "prompt": "c",
		"max_tokens": 1, "stop": ["d", "e"], "schema": {"type": "null"}, "think": true, "temperature": 0.5, "top_k": 2,
		"top_p": 0.25, "min_p": 0.125, "seed": 18446744073709551615}`)
	require.NoError(t, err)
	yes, half, two, quarter, eighth, seed := true, float32(0.5), 2, float32(0.25), float32(0.125), ^uint64(0)
	require.Equal(t, sluice.Request{Messages: []sluice.Message{sluice.System("a"), sluice.User("b")}, Prompt: "c", MaxTokens: 1,
		Stop: []string{"d", "e"}, Schema: `{"type": "null"}`, Think: &yes, Temperature: &half, TopK: &two, TopP: &quarter,
		MinP: &eighth, Seed: &seed}, r)
}

// TestParseRefuses: what is no object of known members is refused with what is wanted.
func TestParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"": "ends too early", "{": "ends too early", "[]": "want a JSON object", "1": "want a JSON object",
		`{"max_token": 1}`:        "max_token",
		`{"max_tokens": "1"}`:     "max_tokens",
		`{"seed": -1}`:            "seed",
		`{"prompt": "x"} {}`:      "there is more behind",
		`{"messages": ["hello"]}`: "messages",
		strings.Repeat("[", 1e6):  "want a JSON object",
	} {
		_, err := parseRequest(text)
		require.ErrorContains(t, err, says, "%.20s", text)
		require.ErrorContains(t, err, "request: ")
		if text != "" {
			_, err = parseOptions(text)
			require.ErrorContains(t, err, "options: ")
		}
	}
}

// TestModels: a number is of one model, until it is taken.
func TestModels(t *testing.T) {
	var m models
	a, b := &sluice.Model{}, &sluice.Model{}
	one, two := m.add(a), m.add(b)
	require.NotZero(t, one)
	require.NotEqual(t, one, two)
	got, err := m.find(one)
	require.NoError(t, err)
	require.Same(t, a, got)
	got, err = m.take(two)
	require.NoError(t, err)
	require.Same(t, b, got)
	for _, none := range []uint64{0, two, 99} {
		_, err = m.find(none)
		require.ErrorContains(t, err, "there is no such model")
		_, err = m.take(none)
		require.ErrorContains(t, err, "there is no such model")
	}
	require.Greater(t, m.add(a), two, "a number is not given again")
}
