package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Placeholders are the values for the words in braces of a peer's command.
type Placeholders struct {
	Model                                string
	Threads, Prompt, Tokens, Depth, Seqs int
}

// placeholder matches a word in braces, known or not. It does not match JSON in a command.
var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// fill returns the value of one placeholder; an unknown one is an error.
func (v *Placeholders) fill(name string) (string, error) {
	switch name {
	case "{model}":
		if v.Model == "" {
			return "", errors.New("{model} is not known for the embedded model: name a file with -m")
		}
		return v.Model, nil
	case "{threads}":
		return strconv.Itoa(v.Threads), nil
	case "{prompt}":
		return strconv.Itoa(v.Prompt), nil
	case "{tokens}":
		return strconv.Itoa(v.Tokens), nil
	case "{depth}":
		return strconv.Itoa(v.Depth), nil
	case "{seqs}":
		return strconv.Itoa(v.Seqs), nil
	}
	return "", fmt.Errorf("%s is not filled in: want {model}, {threads}, {prompt}, {tokens}, {depth} or {seqs}", name)
}

// Command fills in a template such as "llama-bench -m {model} -p {prompt}", whose words are separated by blanks. Text
// before ": " names the command; without it the name is the program's.
func Command(template string, v Placeholders) (name string, words []string, err error) {
	name, command, named := strings.Cut(template, ": ")
	if !named {
		command = template
	}
	for _, word := range strings.Fields(command) { // before filling in: a path may hold blanks
		words = append(words, placeholder.ReplaceAllStringFunc(word, func(p string) string {
			text, fault := v.fill(p)
			err = cmp.Or(err, fault)
			return text
		}))
	}
	if err == nil && len(words) == 0 {
		err = fmt.Errorf("%q is no command", template)
	}
	if err != nil {
		return "", nil, err
	}
	if !named {
		name = words[0][strings.LastIndexByte(words[0], '/')+1:]
	}
	return name, words, nil
}

// ParsePeer finds tokens per second in a peer's output: llama-bench's list of tests, of which the last of each kind
// counts; or, as its last line, an object with prefill_tps, decode_tps and perhaps decode_step_tps, each a number or
// an object with a median. If generates is false, decode_tps may be missing.
func ParsePeer(output []byte, generates bool) (Speeds, error) {
	text := bytes.TrimSpace(output)
	last := text[bytes.LastIndexByte(text, '\n')+1:]
	s, err := parseTests(text)
	if err != nil { // no list
		s, err = parseLine(last)
	}
	if err != nil || !(s.Prefill > 0 && s.Decode >= 0 && s.Step >= 0) || generates && s.Decode == 0 {
		return Speeds{}, fmt.Errorf("it printed %.80q at its end: want a line of JSON with prefill_tps and decode_tps, "+
			"each above 0, or llama-bench's list (-o json)", last)
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
		return s, err
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
	if err := json.Unmarshal(text, &result); err != nil {
		return Speeds{}, err
	}
	return Speeds{float64(result.Prefill), float64(result.Decode), float64(result.Step)}, nil
}

// rate decodes from a number, or from an object with a median.
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
