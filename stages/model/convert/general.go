package convert

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// general writes the keys that say what the model is called, and its recommended settings.
func (c *converter) general(tensors []Tensor) error {
	generation, err := parseObject("generation_config.json", c.folder.Texts["generation_config.json"])
	if err != nil {
		return err
	}
	if generation.has("top_k") {
		c.meta.Set("general.sampling.top_k", int32(generation.int("top_k")))
	}
	for _, k := range [][2]string{{"top_p", "top_p"}, {"min_p", "min_p"}, {"temp", "temperature"}} {
		if x, ok := generation.float(k[1]); ok {
			c.meta.Set("general.sampling."+k[0], float32(x))
		}
	}
	id := c.folder.Name
	if c.options.Name != "" {
		id = c.options.Name
	}
	size := sizeOf(tensors)
	n := nameOf(id, size.total)
	if strings.Contains(id, " ") {
		c.meta.Set("general.name", id)
	} else {
		c.meta.Set("general.name", title(n.full))
	}
	for _, k := range [][2]string{{"version", n.version}, {"organization", title(n.organization)},
		{"finetune", n.finetune}, {"basename", n.base}, {"size_label", n.size}} {
		if k[1] != "" {
			c.meta.Set("general."+k[0], k[1])
		}
	}
	if n.size == "" {
		c.meta.Set("general.size_label", size.label())
	}
	return generation.err()
}

// name is what the name of a repository says: Qwen3-8B-Instruct, org/Model-v2-7B-chat.
type name struct{ full, organization, base, finetune, version, size string }

// partKind is what a part of a name is.
type partKind uint8

const (
	isBase partKind = 1 << iota
	isSize
	isFinetune
	isVersion
	isType
)

var (
	versionPart = regexp.MustCompile(`^(?i:(v|iter)?\d+([.]\d+)*)$`)
	typePart    = regexp.MustCompile(`^(?i:i?q\d(_\w)*|b?fp?(16|32))$`)
	sizePart    = regexp.MustCompile(`^(?i:(([A]|\d+[x])?\d+([._]\d+)?[KMBT][\d]?|small|mini|medium|large|x?xl))$`)
	tunedPart   = regexp.MustCompile(`^(?i:chat|instruct|vision|lora)$`)
	asItIs      = regexp.MustCompile(`^(v\d+(?:\.\d+)*|\d.*)$`)
)

// nameOf takes a name apart as llama.cpp does, which names files and shows models by its parts.
func nameOf(id string, parameters int64) name {
	n := name{full: id}
	if strings.Contains(id, " ") {
		return n
	}
	if org, rest, ok := strings.Cut(id, "/"); ok {
		n.full = rest
		if !strings.HasPrefix(org, ".") {
			n.organization = org
		}
	}
	var parts []string
	for p := range strings.SplitSeq(n.full, "-") {
		if p != "" {
			parts = append(parts, p)
		}
	}
	kinds := make([]partKind, len(parts))
	for i := range parts {
		parts[i], kinds[i] = classify(parts[i], i, parameters)
	}
	preferNumbers(parts, kinds)
	findBase(parts, kinds)
	join := func(want partKind, without partKind) string {
		var out []string
		for i, p := range parts {
			if kinds[i]&want != 0 && kinds[i]&without == 0 && (want != isSize || !slices.Contains(out, p)) {
				out = append(out, p)
			}
		}
		return strings.Join(out, "-")
	}
	n.size, n.finetune, n.version = join(isSize, 0), join(isFinetune, 0), join(isVersion, isBase)
	if n.size != "" || n.finetune != "" || n.version != "" { // else it is anybody's guess
		n.base = join(isBase, 0)
	}
	return n
}

// classify says what part i of a name is, and how it is written.
func classify(p string, i int, parameters int64) (string, partKind) {
	switch {
	case versionPart.MatchString(p):
		return p, isVersion
	case typePart.MatchString(p):
		return strings.ToUpper(p), isType
	case i > 0 && sizePart.MatchString(p):
		return classifySize(strings.ReplaceAll(p, "_", "."), parameters)
	case i > 0 && tunedPart.MatchString(p):
		return p, isFinetune
	}
	return p, 0
}

// classifySize tells numbers of parameters from lengths of contexts, which look alike.
func classifySize(p string, parameters int64) (string, partKind) {
	last := len(p) - 1
	if last > 1 && unicode.IsDigit(rune(p[last])) { // 7b1 is 7.1B
		p = p[:last-1] + "." + p[last:] + p[last-1:last]
		last = len(p) - 1
	}
	if last > 0 && unicode.IsDigit(rune(p[last-1])) {
		p = p[:last] + strings.ToUpper(p[last:])
	}
	x, err := strconv.ParseFloat(p[:last], 64)
	power := strings.IndexByte(" KMBT", p[last])
	if err != nil || power < 0 || parameters == 0 {
		return p, isSize
	}
	for range power {
		x *= 1000
	}
	if off := x - float64(parameters); off > 7*float64(parameters)/8 || -off > 7*float64(parameters)/8 {
		return p[:last] + strings.ToLower(p[last:]), isFinetune
	}
	return p, isSize
}

// preferNumbers drops sizes in words where one is in numbers.
func preferNumbers(parts []string, kinds []partKind) {
	numbered := false
	for i, p := range parts {
		numbered = numbered || kinds[i]&isSize != 0 && strings.ContainsFunc(p, unicode.IsDigit)
	}
	for i, p := range parts {
		if numbered && kinds[i]&isSize != 0 && !strings.ContainsFunc(p, func(r rune) bool { return !unicode.IsLetter(r) }) {
			kinds[i] &^= isSize
		}
	}
}

// findBase marks the parts in front: the base name, less versions at its end. What is left is how it was tuned.
func findBase(parts []string, kinds []partKind) {
	front := true
	for i, p := range parts {
		if front && (kinds[i] == 0 && unicode.IsLetter([]rune(p)[0]) || kinds[i]&isVersion != 0) {
			kinds[i] |= isBase
			continue
		}
		front = false
		if kinds[i] == 0 {
			kinds[i] = isFinetune
		}
	}
	for i := len(kinds) - 1; i >= 0 && kinds[i]&isBase != 0 && kinds[i] != isBase; i-- {
		kinds[i] &^= isBase
	}
}

// title writes a name as a title: words in small letters begin with a capital.
func title(id string) string {
	words := strings.Fields(strings.ReplaceAll(id, "-", " "))
	for i, w := range words {
		if w == strings.ToLower(w) && strings.ContainsFunc(w, unicode.IsLetter) && !asItIs.MatchString(w) {
			words[i] = capitals(w)
		}
	}
	return strings.Join(words, " ")
}

// capitals makes the first letter of each run of letters a capital.
func capitals(w string) string {
	inside := false
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			inside = false
			return r
		}
		if inside {
			return r
		}
		inside = true
		return unicode.ToUpper(r)
	}, w)
}

// sizes counts parameters: all, those that every token uses, and those of one expert of each layer.
type sizes struct {
	total, shared, expert int64
	experts               int
}

func sizeOf(tensors []Tensor) sizes {
	var s sizes
	sum, stacks := 0, 0
	for i := range tensors {
		t, n := &tensors[i], int64(1)
		for _, d := range t.Shape {
			n *= int64(d)
		}
		s.total += n
		if !strings.Contains(t.Name, "_exps.") || len(t.Shape) < 3 {
			s.shared += n
			continue
		}
		experts := t.Shape[2]
		s.expert += n / int64(experts)
		sum, stacks = sum+experts, stacks+1
	}
	if stacks > 0 {
		s.experts = sum / stacks
	}
	return s
}

// label is how large a model is in a word: 8.0B, or 8x7.0B.
func (s sizes) label() string {
	if s.experts > 0 {
		return strconv.Itoa(s.experts) + "x" + rounded(s.shared+s.expert)
	}
	return rounded(s.total)
}

// rounded writes a count with two digits at least.
func rounded(n int64) string {
	x, unit := float64(n)/1e3, "K"
	switch {
	case n > 1e12:
		x, unit = float64(n)/1e12, "T"
	case n > 1e9:
		x, unit = float64(n)/1e9, "B"
	case n > 1e6:
		x, unit = float64(n)/1e6, "M"
	}
	digits := len(strings.TrimLeft(strconv.FormatFloat(x, 'f', 0, 64), "0"))
	return strconv.FormatFloat(x, 'f', max(2-digits, 0), 64) + unit
}
