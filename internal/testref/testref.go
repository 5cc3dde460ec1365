// Package testref finds the reference data (models, fixtures, vocabularies, templates) that tests compare against,
// and skips or fails tests whose data or tools are missing.
//
// The data lies beside a developer's checkout and in CI, not on a user's machine; only tests import this package.
package testref

import (
	"os"
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
// repeated at its end; tests without them are skipped there, too.
func Missing(t testing.TB, what, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" && !slices.Contains(strings.Fields(os.Getenv("SLUICE_WITHOUT")), what) {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
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
