package release

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"
)

// Manifests are the texts by which Homebrew, winget and a shell install a release, by their names. sum has the checksum
// (SHA-256, in hexadecimal digits) of a file of the release.
func Manifests(version string, sum func(name string) (string, bool)) (map[string][]byte, error) {
	var missing []string
	have := func(name string) string {
		digest, ok := sum(name)
		if !ok {
			missing = append(missing, name)
		}
		return digest
	}
	made := map[string][]byte{}
	for name, text := range manifests {
		t, err := template.New(name).Funcs(words).Funcs(template.FuncMap{"sum": have, "upper": strings.ToUpper}).Parse(text)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, map[string]string{"Version": version,
			"URL": "https://github.com/sluice-ai/sluice/releases/download/v" + version + "/"}); err != nil {
			return nil, err
		}
		made[name] = out.Bytes()
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s: is named by a manifest, but is not in the release", missing[0])
	}
	return made, nil
}

// manifests are the templates of the texts.
var manifests = map[string]string{
	"install.sh": installer,
	"sluice.rb": `class Sluice < Formula
  desc "Runs large language models on this machine"
  homepage "https://github.com/sluice-ai/sluice"
  version "{{.Version}}"
  license "Apache-2.0"
{{range $os, $name := systems}}
  on_{{$os}} do
{{- range $cpu, $arch := processors}}
    on_{{$cpu}} do
      url "{{$.URL}}{{archive $.Version $name $arch}}"
      sha256 "{{sum (archive $.Version $name $arch)}}"
    end
{{- end}}
  end
{{end}}
  def install
    bin.install "sluice"
    man1.install "sluice.1"
    bash_completion.install "sluice.bash" => "sluice"
    zsh_completion.install "sluice.zsh" => "_sluice"
    fish_completion.install "sluice.fish"
  end

  test do
    assert_match "Paris", shell_output("#{bin}/sluice run --temp 0 'What is the capital of France?'")
  end
end
`,
	"sluice-ai.sluice.yaml": `PackageIdentifier: sluice-ai.sluice
PackageVersion: {{.Version}}
DefaultLocale: en-US
ManifestType: version
ManifestVersion: 1.6.0
`,
	"sluice-ai.sluice.locale.en-US.yaml": `PackageIdentifier: sluice-ai.sluice
PackageVersion: {{.Version}}
PackageLocale: en-US
Publisher: sluice-ai
PackageName: sluice
PackageUrl: https://github.com/sluice-ai/sluice
License: Apache-2.0
ShortDescription: Runs large language models on this machine
ManifestType: defaultLocale
ManifestVersion: 1.6.0
`,
	"sluice-ai.sluice.installer.yaml": `PackageIdentifier: sluice-ai.sluice
PackageVersion: {{.Version}}
InstallerType: zip
NestedInstallerType: portable
Installers:
{{- range $cpu, $arch := windows}}
- Architecture: {{$cpu}}
  NestedInstallerFiles:
  - RelativeFilePath: sluice-{{$.Version}}-windows-{{$arch}}\sluice.exe
    PortableCommandAlias: sluice
  InstallerUrl: {{$.URL}}sluice-{{$.Version}}-windows-{{$arch}}.zip
  InstallerSha256: {{upper (sum (printf "sluice-%s-windows-%s.zip" $.Version $arch))}}
{{- end}}
ManifestType: installer
ManifestVersion: 1.6.0
`,
}

// installer is a script for the shells of Linux and macOS.
const installer = `#!/bin/sh
# Installs sluice {{.Version}} into a folder, $HOME/.local/bin if none is named: sh install.sh [FOLDER]
# SLUICE_RELEASE names another folder or server that has the archives.
set -eu

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

folder=${1:-$HOME/.local/bin}
from=${SLUICE_RELEASE:-{{.URL}}}
case $(uname -s) in
Linux) system=linux ;;
Darwin) system=darwin ;;
*) fail "no archive for $(uname -s): Windows has winget and the zip, others have 'go install'" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "no archive for $(uname -m): try 'go install github.com/sluice-ai/sluice/cmd/sluice@latest'" ;;
esac
case $system-$arch in
{{- range $name := systems}}{{range $arch := processors}}
{{$name}}-{{$arch}}) want={{sum (archive $.Version $name $arch)}} ;;
{{- end}}{{end}}
esac

name=sluice-{{.Version}}-$system-$arch
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
if command -v curl >/dev/null; then
	curl -fsSL -o "$temp/archive" "${from%/}/$name.tar.gz" || fail "${from%/}/$name.tar.gz: could not be fetched"
else
	wget -qO "$temp/archive" "${from%/}/$name.tar.gz" || fail "${from%/}/$name.tar.gz: could not be fetched by curl or wget"
fi
if command -v sha256sum >/dev/null; then
	have=$(sha256sum <"$temp/archive")
else
	have=$(shasum -a 256 <"$temp/archive")
fi
[ "${have%% *}" = "$want" ] || fail "$name.tar.gz is not the archive that was released: its checksum is ${have%% *}, want $want"
tar -xzf "$temp/archive" -C "$temp"
mkdir -p "$folder"
# First beside it, then in its place: a program that runs goes on with its own file.
cp "$temp/$name/sluice" "$folder/.sluice.new"
mv -f "$folder/.sluice.new" "$folder/sluice"
echo "installed $folder/sluice"
case :$PATH: in
*:"$folder":*) ;;
*) echo "add it to your path: export PATH=\"$folder:\$PATH\"" ;;
esac
`

// words are what templates ask for: the systems and processors by the names that others have for them.
var words = template.FuncMap{
	"systems":    func() map[string]string { return map[string]string{"macos": "darwin", "linux": "linux"} },
	"processors": func() map[string]string { return map[string]string{"arm": "arm64", "intel": "amd64"} },
	"windows":    func() map[string]string { return map[string]string{"x64": "amd64", "arm64": "arm64"} },
	"archive": func(version, system, arch string) string {
		return fmt.Sprintf("sluice-%s-%s-%s.tar.gz", version, system, arch)
	},
}
