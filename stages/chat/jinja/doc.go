// Package jinja renders the subset of Jinja2 that chat templates are written in, byte for byte as Jinja2 3.1.2 does
// in transformers' ImmutableSandboxedEnvironment (trim_blocks, lstrip_blocks, loop controls, generation blocks).
//
// Source text becomes tokens (lexer.go), a tree (parse*.go, ast.go) and is then walked (eval*.go) over values with
// Python's semantics (value.go, ops.go, attr.go, repr.go). Templates are untrusted: every walk has a budget
// (budget.go), nothing here reads a clock, a file or the network, and no input makes it panic.
// Known differences: a name read in a loop before the template assigns it outside the loop still has the value that
// the caller passed (Jinja2 forgets it); methods of strings marked safe give plain ones; a constant that cannot be
// sliced is an error. Not here: include, import, extends, i18n, async.
package jinja
