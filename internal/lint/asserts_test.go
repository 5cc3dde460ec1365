package lint

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDevicesAreNotAsserted: who uses a device or its models asks their interface, and not by a type what else they do:
// what a caller needs to know stands in Traits (docs/adr/0042). Tests may, and so may what they are made of.
func TestDevicesAreNotAsserted(t *testing.T) {
	folders := map[string][]*source{}
	fset := token.NewFileSet()
	for name, text := range texts(t, ".go") {
		if dir := path.Dir(name); !strings.HasSuffix(name, "_test.go") && dir != "internal/backendtest" {
			folders[dir] = append(folders[dir], parseInto(t, fset, name, text))
		}
	}
	seen := 0
	for _, files := range folders {
		names := deviceNames(files)
		seen += len(names)
		for _, s := range files {
			for _, fault := range asserted(s, names) {
				t.Error(fault)
			}
		}
	}
	require.Greater(t, seen, 10, "names of devices and models were found")
}

// isDevice says whether a type is backend.Device or backend.Model, or a list, map or channel of them.
func isDevice(e ast.Expr, within string) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		from, _ := e.X.(*ast.Ident)
		return from != nil && from.Name == "backend" && (e.Sel.Name == "Device" || e.Sel.Name == "Model")
	case *ast.Ident:
		return within == "internal/backend" && (e.Name == "Device" || e.Name == "Model")
	case *ast.ArrayType:
		return isDevice(e.Elt, within)
	case *ast.MapType:
		return isDevice(e.Value, within)
	case *ast.Ellipsis:
		return isDevice(e.Elt, within)
	}
	return false
}

// deviceNames are the fields, parameters, results and variables of a package that are declared as devices or models,
// its functions that return one, and what is made by those or by Compile.
func deviceNames(files []*source) (names []string) {
	add := func(all ...*ast.Ident) {
		for _, id := range all {
			names = append(names, id.Name)
		}
	}
	inspect := func(visit func(s *source, n ast.Node)) {
		for _, s := range files {
			ast.Inspect(s.ast, func(n ast.Node) bool { visit(s, n); return true })
		}
	}
	inspect(func(s *source, n ast.Node) {
		switch n := n.(type) {
		case *ast.Field:
			if isDevice(n.Type, s.dir()) {
				if add(n.Names...); len(n.Names) == 0 {
					add(embedded(n.Type))
				}
			}
		case *ast.ValueSpec:
			if n.Type != nil && isDevice(n.Type, s.dir()) {
				add(n.Names...)
			}
		case *ast.FuncDecl:
			if r := n.Type.Results; r != nil && len(r.List) > 0 && isDevice(r.List[0].Type, s.dir()) {
				add(n.Name)
			}
		}
	})
	inspect(func(_ *source, n ast.Node) {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Rhs) == 1 {
			to, _ := a.Lhs[0].(*ast.Ident)
			if call, ok := a.Rhs[0].(*ast.CallExpr); ok && to != nil && to.Name != "_" && called(call) == "Compile" {
				add(to)
			}
		}
	})
	return names
}

// embedded is the name of a field without one.
func embedded(e ast.Expr) *ast.Ident {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel
	}
	return ast.NewIdent("")
}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// asserted finds assertions of what has such a name, plain, through a list, a call or any().
func asserted(s *source, names []string) (faults []string) {
	var of func(e ast.Expr) string
	of = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.Ident:
			return e.Name
		case *ast.SelectorExpr:
			return e.Sel.Name
		case *ast.IndexExpr:
			return of(e.X)
		case *ast.ParenExpr:
			return of(e.X)
		case *ast.CallExpr:
			if name := called(e); name != "any" || len(e.Args) == 0 {
				return name
			}
			return of(e.Args[0])
		}
		return ""
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if a, ok := n.(*ast.TypeAssertExpr); ok && slices.Contains(names, of(a.X)) {
			faults = append(faults, s.at(a.Pos())+": "+of(a.X)+" is a device or its model: ask its interface, not its type")
		}
		return true
	})
	return faults
}

func TestDevicesAreNotAssertedSeesFaults(t *testing.T) {
	const head = "package p\ntype a struct { backend.Model; card backend.Device; cards []backend.Device; n any }\n"
	for text, want := range map[string]string{
		"func f(a a) { _, _ = a.card.(interface{ Free() int }) }":                  "a.go:3: card is a device",
		"func f(a a) { _ = a.cards[0].(*exec.Device) }":                            "cards is a device",
		"func f(d backend.Device) { switch d.(type) {} }":                          "d is a device",
		"func f(a a) { _ = a.Model.(x) }":                                          "Model is a device",
		"func f(a a) { _ = any(a.card).(x) }":                                      "card is a device",
		"func f(a a) { m, _ := a.card.Compile(p, c); _ = m.(x) }":                  "m is a device",
		"func g() backend.Model { return nil }\nfunc f() { _ = g().(x) }":          "g is a device",
		"func f(a a) { _ = a.n.(x); _ = a.card.Traits(); var e error; _ = e.(x) }": "",
	} {
		s := parse(t, "actors/a.go", head+text)
		got := strings.Join(asserted(s, deviceNames([]*source{s})), "\n")
		if want == "" {
			require.Empty(t, got, text)
			continue
		}
		require.Contains(t, got, want, text)
	}
}
