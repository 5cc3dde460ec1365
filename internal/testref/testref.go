// Package testref finds the reference data (models, fixtures, vocabularies, templates) that tests compare against.
//
// The data lies beside a developer's checkout and in CI, not on a user's machine; only tests import this package.
package testref

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the reference folder: SLUICE_SHARED, else ../shared beside the module root. Without it the
// test is skipped, except under CI=true, where a missing reference is a failure.
func Dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SLUICE_SHARED")
	if dir == "" {
		dir = filepath.Join(root(t), "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("reference data: %v: set SLUICE_SHARED to the folder that holds it", err)
		}
		t.Skipf("reference data: %v: set SLUICE_SHARED to the folder that holds it", err)
	}
	return dir
}

// root walks up from the test's working directory to the folder with go.mod.
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
