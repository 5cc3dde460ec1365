package env

import (
	"runtime/debug"
	"strings"
)

// Version is the module's version, which the Go tool records for an install by version.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// Built is the commit that this program was built from, else its version; empty if neither is known.
func Built() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return builtFrom(info)
}

func builtFrom(info *debug.BuildInfo) string {
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", changed"
		}
	}
	if commit != "" {
		return commit + changed
	}
	return strings.TrimPrefix(info.Main.Version, "(devel)") // which says nothing
}
