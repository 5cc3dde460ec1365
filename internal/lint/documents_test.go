package lint

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	makeTarget = regexp.MustCompile(`(?m)^([a-z-]+):`)
	makeUse    = regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
	linked     = regexp.MustCompile(`\]\(([^):]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ (.+)$`)
	unlinked   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	// placed matches folders and files of this module that a document names in code style.
	placed = regexp.MustCompile("`((?:actors|cmd|cpu|docs|gpu|internal|server|stages|storage)(?:/[\\w.-]+)*)`")
)

// TestDocuments checks what the documents name: make's targets, links, folders and files. That the commands
// they show parse is checked beside the commands.
func TestDocuments(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	all, found := texts(t, ".md"), map[string]bool{}
	for name, text := range all {
		for _, m := range makeUse.FindAllStringSubmatch(text, -1) {
			if !targets[m[1]] {
				t.Errorf("%s: names make %s, but the Makefile has no such target", name, m[1])
			}
		}
		for _, m := range placed.FindAllStringSubmatch(text, -1) {
			exists(t, name, root, m[1])
		}
		for _, m := range linked.FindAllStringSubmatch(text, -1) {
			file, place, _ := strings.Cut(m[1], "#")
			if file = path.Join(path.Dir(name), file); strings.HasPrefix(m[1], "#") {
				file = name
			}
			exists(t, name, root, file)
			found[file] = true
			if place != "" && !slices.Contains(places(all[file]), place) {
				t.Errorf("%s: links to %s, but %s has no such heading", name, m[1], file)
			}
		}
	}
	for name := range all {
		if under(name, "docs") && !under(name, "docs/adr") && !found[name] {
			t.Errorf("%s: no document links to it", name)
		}
	}
}

// places are what links to the headings of a document are called.
func places(text string) (names []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		names = append(names, strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return names
}

// TestReadingOrder: who opens the packages in the order of docs/structure.md has read what each of them uses, of those
// named.
func TestReadingOrder(t *testing.T) {
	text := texts(t, ".md")["docs/structure.md"]
	_, order, found := strings.Cut(text, "\nTo read the source, ")
	require.True(t, found)
	order, _, _ = strings.Cut(order, "\n\n")
	at := map[string]int{}
	for i, m := range placed.FindAllStringSubmatch(order, -1) {
		at[m[1]] = i
	}
	require.Greater(t, len(at), 10)
	each(t, func(s *source) (faults []string) {
		from, listed := at[s.dir()]
		if !listed || s.test() {
			return nil
		}
		for _, spec := range s.ast.Imports {
			used, _ := strconv.Unquote(spec.Path.Value)
			if to, ok := at[strings.TrimPrefix(used, module+"/")]; ok && to > from {
				faults = append(faults, "docs/structure.md: "+s.dir()+" is read before "+used+", which it uses")
			}
		}
		return faults
	})
}

func exists(t *testing.T, document, dir, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
		t.Errorf("%s: names %s, which does not exist", document, name)
	}
}

func TestRequiredFiles(t *testing.T) {
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "Makefile", ".ci/run",
		".ci/budget"} {
		exists(t, "the module", root, name)
	}
	changes, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	require.NoError(t, err)
	require.True(t, strings.Contains(string(changes), "## [Unreleased]"))
}

// TestChanges holds CHANGELOG.md to news: below each heading bullets of one short line, each of which names what a
// user can type, call or open.
func TestChanges(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	require.NoError(t, err)
	for _, fault := range news(string(text)) {
		t.Error(fault)
	}
}

// released matches the headings of versions; the date of a version stands behind a dash.
var released = regexp.MustCompile(`^## \[(Unreleased|\d+\.\d+\.\d+)\]( - .+)?$`)

// codeSpan matches a flag, command, endpoint or file in code style.
var codeSpan = regexp.MustCompile("`[^`]+`")

// news finds what is no entry of a changelog: text that is no bullet, a bullet of more than 20 words or without code.
func news(text string) (faults []string) {
	const most = 20
	head, entries, _ := strings.Cut(text, "\n## ")
	if !strings.HasPrefix(entries, "[Unreleased]\n") {
		faults = append(faults, "CHANGELOG.md: want ## [Unreleased] as the first version")
	}
	first := strings.Count(head, "\n") + 2
	for i, line := range strings.Split("## "+entries, "\n") {
		at := "CHANGELOG.md:" + strconv.Itoa(first+i) + ": "
		entry, bullet := strings.CutPrefix(line, "- ")
		switch words := len(strings.Fields(entry)); {
		case strings.HasPrefix(line, "## "):
			if !released.MatchString(line) {
				faults = append(faults, at+"want ## [Unreleased], or ## [1.2.3] - and its date")
			}
		case line == "" || strings.HasPrefix(line, "### "):
		case !bullet:
			faults = append(faults, at+"want a heading, or an entry of one line that begins with a dash")
		case words > most:
			faults = append(faults, at+"has "+strconv.Itoa(words)+" words, want at most "+strconv.Itoa(most))
		case !codeSpan.MatchString(entry):
			faults = append(faults, at+"names no `flag`, `command` or `endpoint`")
		}
	}
	return faults
}

func TestChangesSeesFaults(t *testing.T) {
	const head = "# Changelog\n\nNews.\n\n## [Unreleased]\n\n### Added\n\n"
	require.Empty(t, news(head+"- `--kv q8` halves the cache.\n\n## [0.1.0] - 2026-12-01\n\n- `run` answers.\n"))
	require.Equal(t, []string{"CHANGELOG.md:9: names no `flag`, `command` or `endpoint`"}, news(head+"- It is faster.\n"))
	require.Len(t, news(head+"- `run` answers\n  in two lines.\n"), 1)
	require.Len(t, news(head+"- `run`"+strings.Repeat(" word", 20)+"\n"), 1)
	require.Len(t, news(head+"- `run` answers.\n\n## 0.1\n"), 1)
	require.Len(t, news("# Changelog\n\n## [0.1.0] - 2026-12-01\n"), 1)
}

// TestDecisions holds the ADRs to numbers of their own and titles that state a decision, and superseded ones to links
// to their successors.
func TestDecisions(t *testing.T) {
	numbers := map[string]string{}
	for name, text := range texts(t, ".md") {
		if under(name, "docs/adr") {
			number, _, _ := strings.Cut(path.Base(name), "-")
			if other, taken := numbers[number]; taken {
				t.Errorf("%s: has the number of %s", name, other)
			}
			numbers[number] = name
			for _, fault := range decision(path.Base(name), text) {
				t.Error(name + fault)
			}
		}
	}
	require.Greater(t, len(numbers), 40)
}

var (
	adrTitle  = regexp.MustCompile(`^# (\d+)\. \p{Lu}\S*( \S+){3,}\n\nStatus: (accepted|proposed|superseded)`)
	question  = regexp.MustCompile(`^# \d+\. (What|Which|Who|How|Why|When|Where|Whether) `)
	successor = regexp.MustCompile(`\]\((\d{4}-[\w-]+\.md)\)`)
)

// decision finds what is wrong with the head of an ADR, given the base name of its file, which begins with its number.
// That a linked file exists is checked by TestDocuments.
func decision(file, text string) (faults []string) {
	title := adrTitle.FindStringSubmatch(text)
	if title == nil {
		return []string{": want # N. and the decision as a sentence, an empty line, and Status: accepted, proposed or superseded"}
	}
	if n, _ := strconv.Atoi(title[1]); !strings.HasPrefix(file, fmt.Sprintf("%04d-", n)) {
		faults = append(faults, ": its title has the number "+title[1])
	}
	if first, _, _ := strings.Cut(text, "\n"); strings.HasSuffix(first, ".") || question.MatchString(first) {
		faults = append(faults, ": its title is a question, or ends in a full stop: want the decision")
	}
	_, status, _ := strings.Cut(text, "\nStatus: ")
	status, _, _ = strings.Cut(status, "\n\n")
	next := successor.FindStringSubmatch(status)
	if strings.Contains(status, "superseded") && (next == nil || next[1] == file) {
		faults = append(faults, ": its Status says superseded, and links to no ADR that replaces it")
	}
	return faults
}

func TestDecisionsSeesFaults(t *testing.T) {
	const head = "# 7. Experts are two ops\n\nStatus: "
	require.Empty(t, decision("0007-experts.md", head+"accepted\n\n## Context\n"))
	require.Empty(t, decision("0007-experts.md", head+"superseded by [ADR 9](0009-one-op.md)\n\n## Context\n"))
	require.Len(t, decision("0007-experts.md", head+"superseded by ADR 9\n\nSee [ADR 9](0009-one-op.md).\n"), 1)
	require.Len(t, decision("0007-experts.md", head+"superseded by [this](0007-experts.md)\n"), 1)
	require.Len(t, decision("0008-experts.md", head+"accepted\n"), 1)
	require.Len(t, decision("0007-experts.md", "# 7. Experts are two ops.\n\nStatus: accepted\n"), 1)
	require.Len(t, decision("0007-experts.md", "# 7. What an expert costs\n\nStatus: accepted\n"), 1)
	require.Len(t, decision("0007-experts.md", "# 7. The experts\n\nStatus: accepted\n"), 1)
	require.Len(t, decision("0007-experts.md", "# 7. Experts are two ops\n\n## Context\n"), 1)
}

// TestBudget: CI's stages are within its goal, and run all of make ci, and make test of make check, whose rest needs no
// reference data and is the stranger's.
func TestBudget(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, ".ci/budget"))
	require.NoError(t, err)
	total, made := 0, []string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		require.GreaterOrEqual(t, len(words), 3, "%s: want a stage, its minutes and a command", line)
		minutes, err := strconv.Atoi(words[1])
		require.NoError(t, err, line)
		if total += minutes; words[2] == "make" {
			made = append(made, words[3:]...)
		}
	}
	require.LessOrEqual(t, total, 40, "minutes of all stages")
	for _, line := range []string{`(?m)^ci: ([a-z -]+) #`, `(?m)^check: .*(test) #`} {
		of := regexp.MustCompile(line).FindSubmatch(makefile)
		require.NotNil(t, of, line)
		require.Subset(t, made, strings.Fields(string(of[1])))
	}
}

// TestSlowTestsAreThere: what make check leaves to make rest by its name has that name.
func TestSlowTestsAreThere(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^SLOW_NAMES = ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	require.NotNil(t, list)
	slow := strings.Fields(strings.ReplaceAll(string(list[1]), "\\", " "))
	require.Greater(t, len(slow), 10)
	there := map[string]bool{}
	for _, s := range sources(t) {
		for _, decl := range s.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && s.test() && d.Recv == nil {
				there[d.Name.Name] = true
			}
		}
	}
	for _, name := range slow {
		require.True(t, there["Test"+name], "SLOW_NAMES of the Makefile: there is no Test%s", name)
	}
}
