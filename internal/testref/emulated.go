package testref

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Arm64 builds the tests of the package at hand for arm64, and returns what runs some of them on an emulated processor,
// by the name that QEMU has for it, and returns what they print.
func Arm64(t testing.TB) (run func(processor, tests string) string) {
	t.Helper()
	qemu := Tool(t, "qemu-user-static", "qemu-aarch64-static")
	program := filepath.Join(t.TempDir(), "arm64.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-o", program, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("tests for arm64: %v\n%s", err, out)
	}
	return func(processor, tests string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), qemu, "-cpu", processor, program, "-test.v", "-test.run", tests).CombinedOutput()
		if err != nil {
			t.Fatalf("%s on %s: %v\n%s", tests, processor, err, out)
		}
		return string(out)
	}
}
