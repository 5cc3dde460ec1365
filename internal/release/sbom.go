package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"
)

// bom is a bill of materials of CycloneDX 1.6, as far as a Go program has one.
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

// component is a program, or a module that is in it.
type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// SBOM writes what a program is made of, as Go has written it into it: the modules with their checksums, and the
// version of Go, whose library is in it. The format is CycloneDX 1.6, in JSON.
func SBOM(w io.Writer, version string, info *debug.BuildInfo, at time.Time) error {
	if info.Main.Path == "" {
		return errors.New("the program does not say which module it is of: want one that go build made of a package by its path")
	}
	module := func(path, version string) component {
		purl := fmt.Sprintf("pkg:golang/%s@%s", path, version)
		return component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
	}
	own := module(info.Main.Path, "v"+version)
	own.Type = "application"
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "vcs.revision":
			own.Properties = append(own.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	all := []component{module("stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := module(m.Path, m.Version)
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}}
		}
		all = append(all, c)
	}
	needs := dependency{Ref: own.Ref}
	for _, c := range all {
		needs.DependsOn = append(needs.DependsOn, c.Ref)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Components: all, Dependencies: []dependency{needs},
		Metadata: metadata{at.UTC().Format(time.RFC3339), own}})
}
