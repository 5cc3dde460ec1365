package release

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"
)

// Manifests are the texts by which Homebrew and winget install a release, by their names. sum has the checksum
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

// words are what templates ask for: the systems and processors by the names that others have for them.
var words = template.FuncMap{
	"systems":    func() map[string]string { return map[string]string{"macos": "darwin", "linux": "linux"} },
	"processors": func() map[string]string { return map[string]string{"arm": "arm64", "intel": "amd64"} },
	"windows":    func() map[string]string { return map[string]string{"x64": "amd64", "arm64": "arm64"} },
	"archive": func(version, system, arch string) string {
		return fmt.Sprintf("sluice-%s-%s-%s.tar.gz", version, system, arch)
	},
}
