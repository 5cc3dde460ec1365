// Package testref finds the reference data (models, fixtures, vocabularies, templates) that tests compare against,
// and skips or fails tests whose data or tools are missing.
//
// The data lies beside a developer's checkout and in CI, not on a user's machine; only tests import this package.
package testref

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Dir returns the reference folder: SLUICE_SHARED, else ../shared beside the module root. Without the folder it calls
// Missing.
func Dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SLUICE_SHARED")
	if dir == "" {
		dir = filepath.Join(root(t), "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
		Missing(t, "reference", "reference data: %v: set SLUICE_SHARED to the folder that holds it", err)
	}
	return dir
}

// Missing ends a test that lacks something, and names it: by a skip on a developer's machine, by a failure under
// CI=true, so that missing tests are noticed. Tools that .ci/run could not install are listed in SLUICE_WITHOUT, and
// repeated at its end; tests without them are skipped there, too. A file that SLUICE_MISSED names is told which tests
// these are, a line each: the package's folder, and the test.
func Missing(t testing.TB, what, format string, args ...any) {
	t.Helper()
	if file := os.Getenv("SLUICE_MISSED"); file != "" {
		missed(t, file)
	}
	if os.Getenv("CI") == "true" && !slices.Contains(strings.Fields(os.Getenv("SLUICE_WITHOUT")), what) {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Tool returns where a program is, by the first of its names that is found. Without any it calls Missing: from is what
// has to be installed, and the first name is what SLUICE_WITHOUT lists.
func Tool(t testing.TB, from string, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, names[0], "%s is missing: install %s", names[0], from)
	return ""
}

// missed appends a test, by the name that -run finds it by. Packages write to the file at the same time: a line is one
// write.
func missed(t testing.TB, file string) {
	t.Helper()
	folder, err := os.Getwd()
	if err == nil {
		folder, err = filepath.Rel(root(t), folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(t.Name(), "/")
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "./%s %s\n", filepath.ToSlash(folder), name); err != nil {
		t.Fatal(err)
	}
}

// root returns the folder with go.mod, above the test's working directory.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = parent
	}
}
