package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Placeholders are what a peer's command can name in braces.
type Placeholders struct {
	Model                                string
	Threads, Prompt, Tokens, Depth, Seqs int
}

// Command fills in a template such as "llama-bench -m {model} -p {prompt}", whose words are separated by blanks. What
// stands before ": " is not part of the command, but names it; without that the name is the program's.
func Command(template string, v Placeholders) (name string, words []string, err error) {
	name, command, named := strings.Cut(template, ": ")
	if !named {
		command = template
	}
	replace := strings.NewReplacer("{model}", v.Model, "{threads}", fmt.Sprint(v.Threads),
		"{prompt}", fmt.Sprint(v.Prompt), "{tokens}", fmt.Sprint(v.Tokens), "{depth}", fmt.Sprint(v.Depth),
		"{seqs}", fmt.Sprint(v.Seqs))
	for _, word := range strings.Fields(command) { // before replacing: a path may hold blanks
		if strings.Contains(word, "{model}") && v.Model == "" {
			return "", nil, errors.New("{model} is not known for the embedded model: name a file with -m")
		}
		words = append(words, replace.Replace(word))
	}
	if len(words) == 0 {
		return "", nil, fmt.Errorf("%q is no command", template)
	}
	if !named {
		name = words[0][strings.LastIndexByte(words[0], '/')+1:]
	}
	return name, words, nil
}

// ParsePeer finds tokens per second in what a peer printed: a line of JSON with prefill_tps, decode_tps and perhaps
// decode_step_tps, each a number or an object with a median; or llama-bench's list of tests, of which the last of each
// kind counts.
func ParsePeer(output []byte) (Speeds, error) {
	text := bytes.TrimSpace(output)
	parse := parseLine
	if bytes.HasPrefix(text, []byte("[")) {
		parse = parseTests
	}
	s, err := parse(text)
	if err != nil {
		return Speeds{}, err
	}
	if !(s.Prefill > 0 && s.Decode > 0 && s.Step >= 0) {
		return Speeds{}, errors.New("it did not print how many tokens per second it prefills and decodes")
	}
	return s, nil
}

func parseTests(text []byte) (s Speeds, err error) {
	var tests []struct {
		Prompt   int     `json:"n_prompt"`
		Generate int     `json:"n_gen"`
		Rate     float64 `json:"avg_ts"`
	}
	if err := json.Unmarshal(text, &tests); err != nil {
		return s, fmt.Errorf("its list of tests: %w", err)
	}
	for _, t := range tests {
		switch {
		case t.Prompt > 0 && t.Generate == 0:
			s.Prefill = t.Rate
		case t.Generate > 0 && t.Prompt == 0:
			s.Decode = t.Rate
		}
	}
	return s, nil
}

func parseLine(text []byte) (Speeds, error) {
	var result struct {
		Prefill rate `json:"prefill_tps"`
		Decode  rate `json:"decode_tps"`
		Step    rate `json:"decode_step_tps"`
	}
	if err := json.Unmarshal(text[bytes.LastIndexByte(text, '\n')+1:], &result); err != nil {
		return Speeds{}, fmt.Errorf("its last line: %w", err)
	}
	return Speeds{float64(result.Prefill), float64(result.Decode), float64(result.Step)}, nil
}

// rate is a number, or the median of an object that has one.
type rate float64

func (r *rate) UnmarshalJSON(text []byte) error {
	var spread struct {
		Median *float64 `json:"median"`
	}
	if json.Unmarshal(text, &spread) == nil && spread.Median != nil {
		*r = rate(*spread.Median)
		return nil
	}
	return json.Unmarshal(text, (*float64)(r))
}
