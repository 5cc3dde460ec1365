package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// compilerVersion is the one that all modules are compiled with. Older ones lack GL_EXT_integer_dot_product and the
// cooperative matrices of KHR.
const compilerVersion = "16.5.0"

// compile runs glslang, from $GLSLANG or PATH.
func compile(u *unit) ([]byte, error) {
	program := os.Getenv("GLSLANG")
	if program == "" {
		program = "glslang"
	}
	version, err := exec.Command(program, "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(version), ":"+compilerVersion) {
		first, _, _ := strings.Cut(string(version), "\n")
		return nil, fmt.Errorf("%s has changed and must be compiled by glslang %s, but %q says %q (%v): build that release of "+
			"KhronosGroup/glslang and set GLSLANG to its program, then run make gen", u.name, compilerVersion, program, first, err)
	}
	out := filepath.Join(os.TempDir(), fmt.Sprintf("sluice-%d-%s.spv", os.Getpid(), u.name))
	defer os.Remove(out)
	args := append([]string{"--target-env", "vulkan1.3", "-I" + sources, "-o", out}, u.flags...)
	text, err := exec.Command(program, append(args, filepath.Join(sources, u.source+".comp"))...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", u.name, err, text)
	}
	return os.ReadFile(out)
}
