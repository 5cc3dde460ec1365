// Package lint holds the tests that keep the module's shape: who may import whom, what pure code may not do,
// how long things may get, which versions are pinned, whether generated files and documents are fresh.
//
// It has no code of its own. A rule that a compiler, vet or golangci-lint checks already is not repeated here.
package lint
