package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clocks are the functions of package time that read the clock or wait for it, timers those that come back later.
var (
	clocks = []string{"Now", "Since", "Sleep", "Until"}
	timers = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Tick"}
)

// seeded are the names of math/rand/v2 whose results depend on a seed alone.
var seeded = []string{"ChaCha8", "New", "NewChaCha8", "NewPCG", "NewZipf", "PCG", "Rand", "Source", "Zipf"}

// vague are endings of type names that say who instead of what.
var vague = []string{"Manager", "Helper", "Util", "Utils", "Impl"}

// vaguePackages exclude nothing and so collect everything.
var vaguePackages = []string{"util", "utils", "common", "helper", "helpers", "misc", "base"}

func TestPureStages(t *testing.T) { each(t, purity) }

// purity finds what pure code may not do: start goroutines, use channels, read the clock or a global random source.
func purity(s *source) (faults []string) {
	if s.test() || !underAny(s.dir(), pure) {
		return nil
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "starts a goroutine"
		case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
			what = "uses a channel"
		case *ast.SelectorExpr:
			what = selectorFault(n)
		}
		if what != "" {
			faults = append(faults, s.at(n.Pos())+": "+what+": pure logic does not")
		}
		return true
	})
	return faults
}

func selectorFault(n *ast.SelectorExpr) string {
	switch x, _ := n.X.(*ast.Ident); {
	case x == nil:
		return ""
	case x.Name == "time" && slices.Contains(clocks, n.Sel.Name):
		return "reads the clock"
	case x.Name == "time" && slices.Contains(timers, n.Sel.Name):
		return "starts a timer"
	case x.Name == "rand" && !slices.Contains(seeded, n.Sel.Name):
		return "uses the global random source"
	}
	return ""
}

func TestActorsUseTheClock(t *testing.T) { each(t, clock) }

// clock finds actors that read the time past their package's clock.go, which tests put under virtual time.
func clock(s *source) (faults []string) {
	if s.test() || !under(s.dir(), "actors") || path.Base(s.path) == "clock.go" {
		return nil
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && selectorFault(sel) == "reads the clock" {
			faults = append(faults, s.at(n.Pos())+": reads the clock past clock.go")
		}
		return true
	})
	return faults
}

func TestActorsSendThroughEdges(t *testing.T) { each(t, sends) }

// sends finds messages that go past the edges that actors were built with: protoactor's context would send anything to
// anybody.
func sends(s *source) (faults []string) {
	if s.test() || s.dir() != "actors" {
		return nil
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, _ := sel.X.(*ast.Ident)
		past := []string{"Send", "Request", "RequestWithCustomSender", "RequestFuture", "Respond", "Forward"}
		if x != nil && x.Name == "c" && slices.Contains(past, sel.Sel.Name) {
			faults = append(faults, s.at(sel.Pos())+": sends past the edges declared in actors/edges.go")
		}
		return true
	})
	return faults
}

func TestNames(t *testing.T) { each(t, names) }

// names finds init functions, and names that say nothing.
func names(s *source) (faults []string) {
	if slices.Contains(vaguePackages, strings.TrimSuffix(s.ast.Name.Name, "_test")) {
		faults = append(faults, s.path+": package "+s.ast.Name.Name+": name it after what it does")
	}
	for _, decl := range s.ast.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == "init" {
				faults = append(faults, s.at(d.Pos())+": init function: pass the state down from main")
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && vagueName(t.Name.Name) {
					faults = append(faults, s.at(t.Pos())+": type "+t.Name.Name+": name it after what it is")
				}
			}
		}
	}
	return faults
}

// singular are names of what stood for one device, or for a processor beside it: devices are numbered (docs/adr/0046).
var singular = []string{"On" + "Host", "Host" + "KV"}

func TestDevicesArePlural(t *testing.T) { each(t, plural) }

// plural finds the first of parts that stand for the only one, and names of a device that is special.
func plural(s *source) (faults []string) {
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if slices.Contains(singular, n.Name) {
				faults = append(faults, s.at(n.Pos())+": "+n.Name+": say which device, by its number")
			}
		case *ast.IndexExpr:
			parts, _ := n.X.(*ast.SelectorExpr)
			first, _ := n.Index.(*ast.BasicLit)
			if !s.test() && parts != nil && parts.Sel.Name == "Parts" && first != nil && first.Value == "0" {
				faults = append(faults, s.at(n.Pos())+": the first of parts: go through all, or have one")
			}
		}
		return true
	})
	return faults
}

func vagueName(name string) bool {
	return slices.ContainsFunc(vague, func(end string) bool { return strings.HasSuffix(name, end) })
}

func TestPackageComments(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		documented[s.dir()] = documented[s.dir()] || s.ast.Doc != nil && len(s.ast.Doc.Text()) > 40
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no package comment: say in five lines what lives there and what does not", dir)
		}
	}
}

func TestLongTestsAreFound(t *testing.T) { each(t, asksShort) }

// asksShort finds code that asks for -short where make does not find the test's name: make ci runs what was left out.
func asksShort(s *source) (faults []string) {
	for _, decl := range s.ast.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if ok && s.test() && d.Recv == nil && strings.HasPrefix(d.Name.Name, "Test") {
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Short" {
				if x, _ := sel.X.(*ast.Ident); x != nil && x.Name == "testing" {
					faults = append(faults, s.at(n.Pos())+": only a test itself asks for -short: make ci runs it by its name")
				}
			}
			return true
		})
	}
	return faults
}

func TestFunctionsFitAScreen(t *testing.T) { each(t, functions) }

// functions finds bodies of more than 60 lines. Comments, blank lines and tables do not count.
func functions(s *source) (faults []string) {
	const limit = 60
	if s.test() || s.generated() {
		return nil
	}
	lines := strings.Split(s.text, "\n")
	free := tables(s)
	for _, decl := range s.ast.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok || d.Body == nil {
			continue
		}
		n := 0
		for i := s.line(d.Body.Lbrace) + 1; i < s.line(d.Body.Rbrace); i++ {
			code := strings.TrimSpace(lines[i-1])
			if code != "" && !strings.HasPrefix(code, "//") && !free[i] {
				n++
			}
		}
		if n > limit {
			faults = append(faults, fmt.Sprintf("%s: func %s has %d lines, want at most %d",
				s.at(d.Pos()), d.Name.Name, n, limit))
		}
	}
	return faults
}

// tables marks the lines inside composite literals and raw strings that span lines.
func tables(s *source) map[int]bool {
	marked := map[int]bool{}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			mark(marked, s.line(n.Lbrace)+1, s.line(n.Rbrace)-1)
		case *ast.BasicLit:
			if n.Kind == token.STRING && strings.Contains(n.Value, "\n") {
				mark(marked, s.line(n.Pos()), s.line(n.End()))
			}
		}
		return true
	})
	return marked
}

func mark(lines map[int]bool, from, to int) {
	for i := from; i <= to; i++ {
		lines[i] = true
	}
}

func TestCodeSeesFaults(t *testing.T) {
	const short = "testing." + "Short()" // make looks for it whole
	long := "package p\nfunc f() {\n" + strings.Repeat("\tf()\n", 61) + "}\n"
	for _, c := range []struct {
		rule             func(*source) []string
		file, text, want string
	}{
		{purity, "stages/kv/a.go", "package p\nfunc f() { go f() }", "goroutine"},
		{purity, "stages/kv/a.go", "package p\nvar c chan int", "channel"},
		{purity, "stages/kv/a.go", "package p\nfunc f() { time.Now() }", "clock"},
		{purity, "stages/kv/a.go", "package p\nfunc f() { time.AfterFunc(1, f) }", "timer"},
		{purity, "stages/kv/a.go", "package p\nfunc f() { rand.IntN(3) }", "random"},
		{purity, "stages/kv/a.go", "package p\nfunc f(t time.Time) { rand.New(rand.NewPCG(1, 2)) }", ""},
		{purity, "stages/kv/a_test.go", "package p\nfunc f() { go f() }", ""},
		{asksShort, "cpu/a_test.go", "package p\nfunc TestA(t *testing.T) { _ = " + short + " }", ""},
		{asksShort, "cpu/a_test.go", "package p\nfunc slow() bool { return " + short + " }", "by its name"},
		{asksShort, "internal/backendtest/a.go", "package p\nfunc TestA() bool { return " + short + " }", "by its name"},
		{clock, "actors/engine.go", "package p\nfunc f() { time.Sleep(1) }", "clock"},
		{clock, "actors/clock.go", "package p\nfunc f() { time.Sleep(1) }", ""},
		{clock, "actors/run/turns.go", "package p\nfunc f() { time.Sleep(1) }", "clock"},
		{sends, "actors/kv.go", "package p\nfunc f(c actor.Context) { c.Send(p, m) }", "past the edges"},
		{sends, "actors/kv.go", "package p\nfunc f(c actor.Context) { k.out.answer.Send(m) }", ""},
		{names, "actors/a.go", "package p\nfunc init() {}", "init"},
		{names, "actors/a.go", "package p\ntype poolManager int", "poolManager"},
		{names, "internal/util/a.go", "package util", "package util"},
		{plural, "actors/a_test.go", "package p\nvar a = b." + singular[0], singular[0]},
		{plural, "actors/a.go", "package p\nvar a = b.Parts[0].C", "first of parts"},
		{plural, "actors/a.go", "package p\nvar a = b.Parts[1].C", ""},
		{functions, "actors/a.go", long, "61 lines"},
		{functions, "actors/a_test.go", long, ""},
	} {
		got := strings.Join(c.rule(parse(t, c.file, c.text)), "\n")
		if c.want == "" {
			require.Empty(t, got, "%s: %s", path.Base(c.file), c.text)
			continue
		}
		require.Contains(t, got, c.want, c.text)
	}
}
