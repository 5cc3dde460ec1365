package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/sluice-ai/sluice/storage/gguf"
)

type inspectCmd struct {
	Model   string `arg:"" optional:"" help:"Model file (GGUF), the folder of a model (safetensors), or the name of one in the store. Without it: the small embedded model."`
	Tensors bool   `help:"List the tensors too."`

	Metadata bool `help:"Show layers, heads, rope, experts, licence, and all keys of the file."`
	JSON     bool `name:"json" help:"Print JSON."`
}

func (inspectCmd) examples() [2]string {
	return [2]string{`sluice inspect --metadata`, `sluice inspect --json model.gguf`}
}

func (c *inspectCmd) Run(e *env) error {
	f, err := e.openModel(c.Model)
	if err != nil {
		return err
	}
	defer f.Close()
	s := summarize(f)
	if c.Tensors {
		s.Tensors = listTensors(f)
	}
	if c.Metadata {
		s.Metadata = metadataJSON(&f.Meta)
	}
	if c.JSON {
		return printJSON(e.stdout, s)
	}
	if err := s.print(e.stdout); err != nil || !c.Metadata {
		return err
	}
	fmt.Fprintln(e.stdout)
	return printMetadata(e.stdout, &f.Meta)
}

// summary is what inspect shows of a file. Its JSON names are part of the interface.
type summary struct {
	File         string         `json:"file"`
	Version      int            `json:"gguf_version"`
	Parts        int            `json:"parts"`
	Architecture string         `json:"architecture"`
	Name         string         `json:"name"`
	Parameters   int64          `json:"parameters"`
	Bytes        int64          `json:"tensor_bytes"`
	Types        []typeShare    `json:"types"`
	Context      int64          `json:"context"` // positions; 0 if the file does not say
	Vocabulary   vocabulary     `json:"vocabulary"`
	Template     bool           `json:"chat_template"`
	Tensors      []tensorRecord `json:"tensors,omitzero"`
	Metadata     map[string]any `json:"metadata,omitempty"` // long arrays as a line shows them
}

// typeShare is the part of a file's tensors that one weight type has.
type typeShare struct {
	Type    string `json:"type"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
}

type vocabulary struct {
	Kind         string `json:"kind"`
	PreTokenizer string `json:"pre_tokenizer"`
	Tokens       int    `json:"tokens"`
}

type tensorRecord struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Shape  []int  `json:"shape"`
	Part   int    `json:"part"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
}

// summarize reads what a file says of itself. Keys that it lacks stay empty: a vocabulary alone is a file too.
func summarize(f *gguf.File) *summary {
	s := &summary{File: f.Name, Version: f.Version, Parts: f.Parts(), Types: []typeShare{}}
	s.Architecture, _ = f.Meta.String("general.architecture")
	s.Name, _ = f.Meta.String("general.name")
	s.Context, _ = f.Meta.Int(s.Architecture + ".context_length")
	s.Vocabulary.Kind, _ = f.Meta.String("tokenizer.ggml.model")
	s.Vocabulary.PreTokenizer, _ = f.Meta.String("tokenizer.ggml.pre")
	tokens, _ := f.Meta.Strings("tokenizer.ggml.tokens")
	s.Vocabulary.Tokens = len(tokens)
	s.Template = f.Meta.Has("tokenizer.chat_template")

	shares := map[string]*typeShare{}
	for _, t := range f.Tensors {
		name := t.Type.String()
		if shares[name] == nil {
			shares[name] = &typeShare{Type: name}
		}
		shares[name].Tensors++
		shares[name].Bytes += t.Size
		s.Bytes += t.Size
		s.Parameters += values(t.Shape)
	}
	for _, share := range shares {
		s.Types = append(s.Types, *share)
	}
	slices.SortFunc(s.Types, func(a, b typeShare) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Type, b.Type))
	})
	return s
}

func listTensors(f *gguf.File) []tensorRecord {
	list := make([]tensorRecord, 0, len(f.Tensors))
	for _, t := range f.Tensors {
		list = append(list, tensorRecord{t.Name, t.Type.String(), t.Shape, t.Part, t.Offset, t.Size})
	}
	return list
}

// values counts the numbers in a tensor.
func values(shape []int) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= int64(d)
	}
	return n
}

func (s *summary) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(what, format string, a ...any) { fmt.Fprintf(t, what+"\t"+format+"\n", a...) }
	row("file", "%s", printable(s.File))
	if s.Version == 0 {
		row("format", "folder of %s, used in place as far as it goes", count(s.Parts-1, "file"))
	} else {
		row("format", "GGUF v%d in %s", s.Version, count(s.Parts, "part"))
	}
	row("architecture", "%s", printable(cmp.Or(s.Architecture, "none named")))
	if s.Name != "" {
		row("name", "%s", printable(s.Name))
	}
	row("parameters", "%s", parameters(s.Parameters))
	row("weights", "%s in %s", binarySize(s.Bytes), count(s.tensorCount(), "tensor"))
	for _, share := range s.Types {
		percent := 100 * float64(share.Bytes) / float64(max(s.Bytes, 1))
		row("", "%s: %s, %.1f %%", share.Type, count(share.Tensors, "tensor"), percent)
	}
	if s.Context > 0 {
		row("context", "%d positions", s.Context)
	}
	row("vocabulary", "%s", s.Vocabulary)
	row("chat template", "%s", map[bool]string{true: "yes", false: "no"}[s.Template])
	if err := t.Flush(); err != nil || s.Tensors == nil {
		return err
	}
	fmt.Fprintln(w)
	return printTensors(w, s.Tensors)
}

func (s *summary) tensorCount() (n int) {
	for _, share := range s.Types {
		n += share.Tensors
	}
	return n
}

func (v vocabulary) String() string {
	if v.Kind == "" {
		return "none"
	}
	pre := ""
	if v.PreTokenizer != "" {
		pre = ", cut as " + printable(v.PreTokenizer)
	}
	return fmt.Sprintf("%s%s, %s", printable(v.Kind), pre, count(v.Tokens, "token"))
}

func printTensors(w io.Writer, tensors []tensorRecord) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "tensor\ttype\tshape\tsize")
	for _, r := range tensors {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", printable(r.Name), r.Type, shapeText(r.Shape), binarySize(r.Bytes))
	}
	return t.Flush()
}

func shapeText(shape []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", " × "), "[]")
}

// printable shows text of a file on a terminal: quoted if it holds anything but printable characters, so that a
// file cannot write escape sequences.
func printable(s string) string {
	if q := strconv.Quote(s); q[1:len(q)-1] != s {
		return q
	}
	return s
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// parameters shows a count as people name models: 26.2 M, 7.24 B.
func parameters(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f B", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	}
	return strconv.FormatInt(n, 10)
}

// binarySize shows bytes in the largest unit of 1024 that leaves a number of 1 or more.
func binarySize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	x, u := float64(n), 0
	for x >= 1024 && u < len(units)-1 {
		x /= 1024
		u++
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, units[u])
}

// printJSON prints one value, indented, and no HTML escapes: people read it too.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printResult prints one value in a line of its own, so that the results of many runs can be read line by line.
func printResult(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
