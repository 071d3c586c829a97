package manifest

import (
	"bytes"
	"text/template"
)

const formula = `class Swdt < Formula
  desc "{{.Description}}"
  homepage "{{.Homepage}}"
  version "{{.Version}}"
  license "{{.Licence}}"
{{range $system := .Systems}}
  on_{{.Name}} do
{{- range .Archives}}
    on_{{.CPU}} do
      url "{{.URL}}"
      sha256 "{{.SHA256}}"
    end
{{- end}}
  end
{{end}}
  def install
    bin.install "swdt"
    bin.install_symlink bin/"swdt" => "kubectl-swdt"
    bash_completion.install "completions/swdt.bash" => "swdt"
    zsh_completion.install "completions/_swdt"
    fish_completion.install "completions/swdt.fish"
    man1.install Dir["man/*.1"]
  end

  test do
    assert_match "agent", shell_output("#{bin}/swdt version")
  end
end
`

type formulaSystem struct {
	Name     string
	Archives []formulaArchive
}

type formulaArchive struct{ CPU, URL, SHA256 string }

func (r Release) homebrew(all map[string][]byte) error {
	text, err := template.New("formula").Parse(formula)
	if err != nil {
		return err
	}
	var systems []formulaSystem
	for _, system := range []struct{ brew, os string }{{"macos", "darwin"}, {"linux", "linux"}} {
		one := formulaSystem{Name: system.brew}
		for _, cpu := range []struct{ brew, arch string }{{"arm", "arm64"}, {"intel", "amd64"}} {
			a, err := r.archive(system.os, cpu.arch)
			if err != nil {
				return err
			}
			one.Archives = append(one.Archives, formulaArchive{cpu.brew, r.url(a), a.SHA256})
		}
		systems = append(systems, one)
	}
	var b bytes.Buffer
	err = text.Execute(&b, map[string]any{
		"Description": description, "Homepage": homepage, "Licence": licence,
		"Version": r.Version.Semver, "Systems": systems,
	})
	all["swdt-homebrew.rb"] = b.Bytes()
	return err
}
