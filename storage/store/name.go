package store

import (
	"fmt"
	"regexp"
	"strings"
)

// Hosts with which names begin.
const (
	HuggingFace = "hf.co"
	Ollama      = "ollama.com"
)

// library is the owner of Ollama's models whose names have no owner.
const library = "library"

// latest is the tag of a name without a tag, if there is no better one.
const latest = "latest"

// Name is the name of a model: [HOST/][OWNER/]MODEL[:TAG]. OWNER/MODEL is a repository of Hugging Face; its tag is a
// quantisation, such as Q4_K_M, or the name of a file without .gguf. MODEL alone is a model of Ollama's library, or
// the name of a copy made here.
type Name struct {
	Host, Owner, Model string
	Tag                string // empty: the only one there is, else the one that Prefer chooses
}

// Patterns of a name's parts. Parts become folders, so none may begin with a dot or contain a slash.
var (
	partOfName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,95}$`)
	tagOfName  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}$`)
)

// mostName bounds the length of a name, also in an error.
const mostName = 400

// hostsByName maps the spellings of hosts to hosts.
var hostsByName = map[string]string{
	HuggingFace: HuggingFace, "huggingface.co": HuggingFace,
	Ollama: Ollama, "registry.ollama.ai": Ollama, "www.ollama.com": Ollama,
}

// ParseName parses a name. The error says which part is wrong.
func ParseName(text string) (Name, error) {
	if len(text) > mostName {
		return Name{}, fmt.Errorf("%.40q… has %d characters, a name has at most %d", text, len(text), mostName)
	}
	spelled, err := fromAddress(text)
	if err != nil {
		return Name{}, err
	}
	rest, tag, tagged := strings.Cut(spelled, ":")
	parts := strings.Split(rest, "/")
	n := Name{Tag: strings.TrimSuffix(tag, ".gguf")}
	switch len(parts) {
	case 1:
		n.Host, n.Owner, n.Model = Ollama, library, parts[0]
	case 2:
		n.Host, n.Owner, n.Model = HuggingFace, parts[0], parts[1]
	case 3:
		n.Host, n.Owner, n.Model = hostsByName[strings.ToLower(parts[0])], parts[1], parts[2]
		if n.Host == "" {
			return Name{}, fmt.Errorf("%.100q: there are no models of %.100q, only of %s and %s", text, parts[0], HuggingFace, Ollama)
		}
	default:
		return Name{}, fmt.Errorf("%.100q is no name of a model: want OWNER/NAME[:QUANT], or NAME[:TAG] for Ollama's", text)
	}
	for _, part := range []string{n.Owner, n.Model} {
		if !partOfName.MatchString(part) {
			return Name{}, fmt.Errorf("%.100q is no name of a model: %.100q is not made of letters, digits, and . - _ inside", text, part)
		}
	}
	if tagged && !tagOfName.MatchString(n.Tag) {
		return Name{}, fmt.Errorf("%.100q is no name of a model: %.100q after the colon is not made of letters, digits, and . - _ + inside",
			text, tag)
	}
	return n, nil
}

// Patterns of addresses that browsers show.
var (
	scheme     = regexp.MustCompile(`(?i)^https?://(www\.)?`)
	numbered   = regexp.MustCompile(`-\d{5}-of-\d{5}$`)
	pathInside = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[\w.-]+/[^:]+\.gguf$`)
)

// fromAddress returns the name that the address of a model's page, or of one of its files, stands for, and so of
// OWNER/NAME/FILE.gguf. It returns any other text as it is.
func fromAddress(text string) (string, error) {
	rest := scheme.ReplaceAllString(text, "")
	address := rest != text
	host, path, _ := strings.Cut(rest, "/")
	hub := hostsByName[strings.ToLower(host)]
	if !address && (hub == "" || strings.Contains(path, ":") || !strings.HasSuffix(path, ".gguf")) {
		if hub == "" && pathInside.MatchString(text) {
			hub, path = HuggingFace, text
		} else {
			return text, nil
		}
	}
	if hub == "" {
		return "", fmt.Errorf("%.100q: there are no models of %.100q, only of %s and %s", text, host, HuggingFace, Ollama)
	}
	path, query, _ := strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	path = strings.Trim(path, "/")
	if hub == Ollama {
		return hub + "/" + path, nil
	}
	parts := strings.Split(path, "/")
	if len(parts) > 4 && (parts[2] == "blob" || parts[2] == "resolve" || parts[2] == "tree") && parts[3] != "main" ||
		len(parts) == 4 && parts[2] == "tree" && parts[3] != "main" {
		return "", fmt.Errorf("%.100q is of the branch %.40q: only main can be pulled", text, parts[3])
	}
	file := ""
	if len(parts) > 2 {
		file = parts[len(parts)-1]
	}
	if shown, ok := strings.CutPrefix(query, "show_file_info="); ok {
		file = shown[strings.LastIndexAny(shown, "/")+1:]
	}
	name := hub + "/" + strings.Join(parts[:min(len(parts), 2)], "/")
	if stem, ok := strings.CutSuffix(file, ".gguf"); ok {
		name += ":" + numbered.ReplaceAllString(stem, "")
	}
	return name, nil
}

// String returns the shortest spelling of the name.
func (n Name) String() string {
	text := n.Owner + "/" + n.Model
	switch {
	case n.Host == Ollama && n.Owner == library:
		text = n.Model
	case n.Host != HuggingFace:
		text = n.Host + "/" + text
	}
	if n.Tag == "" || n.Tag == latest {
		return text
	}
	return text + ":" + n.Tag
}

// Full returns the name with all of its parts, as manifests spell it.
func (n Name) Full() string { return n.Host + "/" + n.Owner + "/" + n.Model + ":" + n.Tag }

// tagged returns the name; if it has no tag, with the tag latest.
func (n Name) tagged() Name {
	if n.Tag == "" {
		n.Tag = latest
	}
	return n
}

// matches reports whether n, as a person wrote it, means m. Upper and lower case count as equal, as they do on hubs.
func (n Name) matches(m Name) bool {
	return n.Host == m.Host && strings.EqualFold(n.Owner, m.Owner) && strings.EqualFold(n.Model, m.Model) &&
		(n.Tag == "" || strings.EqualFold(n.Tag, m.Tag))
}
