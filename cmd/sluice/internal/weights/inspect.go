package weights

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/storage/gguf"
)

type Inspect struct {
	Model   string `arg:"" optional:"" help:"Model file (GGUF), the folder of a model (safetensors), or the name of one in the store. Without it: the small embedded model."`
	Tensors bool   `help:"List the tensors too."`

	Metadata bool `help:"Show layers, heads, rope, experts, licence, and all keys of the file."`
	JSON     bool `name:"json" help:"Print JSON."`
}

func (Inspect) Examples() [2]string {
	return [2]string{`sluice inspect --metadata`, `sluice inspect --json model.gguf`}
}

func (c *Inspect) Run(e *env.Env) error {
	f, err := namedmodel.Open(e.Lookup, c.Model)
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
		return env.PrintJSON(e.Stdout, s)
	}
	if err := s.print(e.Stdout); err != nil || !c.Metadata {
		return err
	}
	fmt.Fprintln(e.Stdout)
	return printMetadata(e.Stdout, &f.Meta)
}

// Summary is what inspect shows of a file. Its JSON names are part of the interface.
type Summary struct {
	File         string         `json:"file"`
	Version      int            `json:"gguf_version"`
	Parts        int            `json:"parts"`
	Architecture string         `json:"architecture"`
	Name         string         `json:"name"`
	Parameters   int64          `json:"parameters"`
	Bytes        int64          `json:"tensor_bytes"`
	Types        []TypeShare    `json:"types"`
	Context      int64          `json:"context"` // positions; 0 if the file does not say
	Vocabulary   Vocabulary     `json:"vocabulary"`
	Template     bool           `json:"chat_template"`
	Tensors      []TensorRecord `json:"tensors,omitzero"`
	Metadata     map[string]any `json:"metadata,omitempty"` // long arrays as a line shows them
}

// TypeShare is the part of a file's tensors that one weight type has.
type TypeShare struct {
	Type    string `json:"type"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
}

type Vocabulary struct {
	Kind         string `json:"kind"`
	PreTokenizer string `json:"pre_tokenizer"`
	Tokens       int    `json:"tokens"`
}

type TensorRecord struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Shape  []int  `json:"shape"`
	Part   int    `json:"part"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
}

// summarize reads what a file says of itself. Keys that it lacks stay empty: a vocabulary alone is a file too.
func summarize(f *gguf.File) *Summary {
	s := &Summary{File: f.Name, Version: f.Version, Parts: f.Parts(), Types: []TypeShare{}}
	s.Architecture, _ = f.Meta.String("general.architecture")
	s.Name, _ = f.Meta.String("general.name")
	s.Context, _ = f.Meta.Int(s.Architecture + ".context_length")
	s.Vocabulary.Kind, _ = f.Meta.String("tokenizer.ggml.model")
	s.Vocabulary.PreTokenizer, _ = f.Meta.String("tokenizer.ggml.pre")
	tokens, _ := f.Meta.Strings("tokenizer.ggml.tokens")
	s.Vocabulary.Tokens = len(tokens)
	s.Template = f.Meta.Has("tokenizer.chat_template")

	shares := map[string]*TypeShare{}
	for _, t := range f.Tensors {
		name := t.Type.String()
		if shares[name] == nil {
			shares[name] = &TypeShare{Type: name}
		}
		shares[name].Tensors++
		shares[name].Bytes += t.Size
		s.Bytes += t.Size
		s.Parameters += models.Values(t.Shape)
	}
	for _, share := range shares {
		s.Types = append(s.Types, *share)
	}
	slices.SortFunc(s.Types, func(a, b TypeShare) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Type, b.Type))
	})
	return s
}

func listTensors(f *gguf.File) []TensorRecord {
	list := make([]TensorRecord, 0, len(f.Tensors))
	for _, t := range f.Tensors {
		list = append(list, TensorRecord{t.Name, t.Type.String(), t.Shape, t.Part, t.Offset, t.Size})
	}
	return list
}

func (s *Summary) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(what, format string, a ...any) { fmt.Fprintf(t, what+"\t"+format+"\n", a...) }
	row("file", "%s", env.Printable(s.File))
	if s.Version == 0 {
		row("format", "folder of %s, used in place as far as it goes", env.Count(s.Parts-1, "file"))
	} else {
		row("format", "GGUF v%d in %s", s.Version, env.Count(s.Parts, "part"))
	}
	row("architecture", "%s", env.Printable(cmp.Or(s.Architecture, "none named")))
	if s.Name != "" {
		row("name", "%s", env.Printable(s.Name))
	}
	row("parameters", "%s", env.Parameters(s.Parameters))
	row("weights", "%s in %s", env.BinarySize(s.Bytes), env.Count(s.tensorCount(), "tensor"))
	for _, share := range s.Types {
		percent := 100 * float64(share.Bytes) / float64(max(s.Bytes, 1))
		row("", "%s: %s, %.1f %%", share.Type, env.Count(share.Tensors, "tensor"), percent)
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

func (s *Summary) tensorCount() (n int) {
	for _, share := range s.Types {
		n += share.Tensors
	}
	return n
}

func (v Vocabulary) String() string {
	if v.Kind == "" {
		return "none"
	}
	pre := ""
	if v.PreTokenizer != "" {
		pre = ", cut as " + env.Printable(v.PreTokenizer)
	}
	return fmt.Sprintf("%s%s, %s", env.Printable(v.Kind), pre, env.Count(v.Tokens, "token"))
}

func printTensors(w io.Writer, tensors []TensorRecord) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "tensor\ttype\tshape\tsize")
	for _, r := range tensors {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", env.Printable(r.Name), r.Type, models.ShapeText(r.Shape), env.BinarySize(r.Bytes))
	}
	return t.Flush()
}
