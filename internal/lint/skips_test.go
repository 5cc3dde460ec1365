package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unable are the files whose tests skip where a machine, or a case, cannot have what they look at: nobody could install
// it. What can be installed is missing by internal/testref, which fails in CI.
var unable = []string{
	"actors/devicetest/devicetest.go",         // what only processors do, where the suite runs on a GPU
	"actors/hybrid_test.go",                   // a clock of the device
	"actors/spancost_test.go",                 // without the race detector
	"cmd/sluice/files_test.go",                // files without a name
	"gpu/cuda/device_test.go",                 // a card: the fake driver takes an hour
	"gpu/cuda/products_test.go",               // a card of Hopper's
	"gpu/vulkan/sample_test.go",               // float64
	"gpu/vulkan/slabs_test.go",                // memory of programs as a device's
	"gpu/vulkan/vk/host_test.go",              // memory of programs as a device's
	"internal/backendtest/model.go",           // a device that computes the program
	"internal/backendtest/unready.go",         // slots in the host's memory
	"internal/safefile/safefile_unix_test.go", // files without a name
	"server/soak_test.go",                     // Linux
	"storage/uring/cached_test.go",            // reads past the page cache, and a kernel that says what it holds
	"storage/uring/forbidden_linux_test.go",   // io_uring, which containers forbid
	"storage/uring/kernel_linux_test.go",      // io_uring
	"storage/uring/ring_test.go",              // io_uring
}

func TestSkipsAreSeen(t *testing.T) {
	each(t, skips)
	for _, name := range unable {
		exists(t, "internal/lint/skips_test.go", root, name)
	}
}

// skips finds tests that are left out for another reason than -short, past internal/testref, and those that ask by
// themselves whether they run in CI, or whether a tool is there: without it they would check less, and nobody sees it.
func skips(s *source) (faults []string) {
	if s.dir() == "internal/testref" {
		return nil
	}
	short := map[ast.Node]bool{}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			short[n.Body] = strings.Contains(s.text[s.offset(n.Cond.Pos()):s.offset(n.Cond.End())], "testing."+"Short()")
		case *ast.BlockStmt:
			if short[n] {
				return false
			}
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := sel.X.(*ast.Ident)
			switch {
			case isTest(sel.X) && strings.HasPrefix(sel.Sel.Name, "Skip") && !slices.Contains(unable, s.path):
				faults = append(faults, s.at(n.Pos())+": skips: say by internal/testref what is missing, so that CI fails without it")
			case x != nil && x.Name == "exec" && sel.Sel.Name == "LookPath" && strings.HasSuffix(s.path, "_test.go"):
				faults = append(faults, s.at(n.Pos())+": asks whether a tool is there: testref.Tool does, so that CI fails without it")
			case sel.Sel.Name == "Getenv" && len(n.Args) == 1 && s.text[s.offset(n.Args[0].Pos()):s.offset(n.Args[0].End())] == `"CI"`:
				faults = append(faults, s.at(n.Pos())+": asks whether it runs in CI: internal/testref does")
			}
		}
		return true
	})
	return faults
}

// isTest says that an expression is a test or a benchmark by its name, also as a field.
func isTest(x ast.Expr) bool {
	name, _ := x.(*ast.Ident)
	if field, ok := x.(*ast.SelectorExpr); ok {
		name = field.Sel
	}
	return name != nil && slices.Contains([]string{"t", "b", "tb", "f"}, name.Name)
}

func TestSkipsAreSeenByTheRule(t *testing.T) {
	const short = "testing." + "Short()" // make looks for it whole
	for text, want := range map[string]int{
		`func f(t T) { t.Skip("no tool") }`:                                    1,
		`func f(t T) { if err != nil { t.Skipf("no %s", tool) } }`:             1,
		`func f(c C) { c.t.Skip("no tool") }`:                                  1,
		`func f(b *testing.B) { b.SkipNow() }`:                                 1,
		`func f(s Scanner) { s.Skip(1) }`:                                      0,
		"func f(t T) { if " + short + " { t.Skip(`long`) } }":                  0,
		"func f(t T) { if slow && " + short + " { t.SkipNow() }; t.Skip() }":   1,
		`func f(t T) { if os.Getenv("CI") == "true" { t.Fatal() } }`:           1,
		`func f(t T) { if p, err := exec.LookPath("x"); err == nil { g(p) } }`: 1,
		`func f(r R) { r.Skip(4) }`:                                            0,
	} {
		require.Len(t, skips(parse(t, "server/a_test.go", "package p\n"+text)), want, text)
	}
	require.Empty(t, skips(parse(t, "storage/uring/ring_test.go", "package p\nfunc f(t T) { t.Skip() }")))
}
