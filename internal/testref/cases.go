package testref

import (
	"bufio"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"testing"
)

// mostLine bounds a line of a file of cases, in bytes.
const mostLine = 1 << 24

// Cases yields the values of a file of JSON lines; path is relative to the reference folder.
func Cases[T any](t testing.TB, path ...string) iter.Seq[T] {
	t.Helper()
	name := filepath.Join(append([]string{Dir(t)}, path...)...)
	return func(yield func(T) bool) {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines, n := bufio.NewScanner(f), 0
		for lines.Buffer(nil, mostLine); lines.Scan(); {
			var c T
			if n++; json.Unmarshal(lines.Bytes(), &c) != nil {
				t.Fatalf("%s: line %d is no %T", name, n, c)
			}
			if !yield(c) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatalf("%s: line %d: %v", name, n+1, err)
		}
		if n == 0 {
			t.Fatalf("%s has no cases", name)
		}
	}
}
