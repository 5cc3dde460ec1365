package release

import (
	"fmt"
	"io"

	"github.com/google/rpmpack"
)

// RPM writes a package of rpm's format 4, which dnf, zypper and rpm install.
func RPM(w io.Writer, p *Package, files []File, how How) error {
	if err := p.check(); err != nil {
		return err
	}
	arch, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[p.Arch]
	if !ok {
		return fmt.Errorf("%q is no processor that rpm packages are made for: want amd64 or arm64", p.Arch)
	}
	files, err := Sorted(files)
	if err != nil {
		return err
	}
	made, err := rpmpack.NewRPM(rpmpack.RPMMetaData{Name: p.Name, Version: p.Version, Release: "1", Arch: arch,
		URL: p.Homepage, Packager: p.Maintainer, Licence: p.License, Summary: p.Summary, Description: p.Description,
		BuildTime: how.At, BuildHost: "sluice.invalid", Compressor: fmt.Sprintf("gzip:%d", how.level())})
	if err != nil {
		return err
	}
	for _, f := range files {
		made.AddFile(rpmpack.RPMFile{Name: "/" + f.Path, Body: f.Data, Mode: uint(f.Mode.Perm()), Owner: "root", Group: "root",
			MTime: uint32(how.At.Unix())})
	}
	return made.Write(w)
}
