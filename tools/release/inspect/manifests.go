package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/tools/release/checksum"
)

// manager is a package manager, and where it gets swdt.
type manager struct {
	file    string
	systems []string
	sources func(text []byte, version string) (map[string]string, error) // the hash for each address
}

func managers() []manager {
	return []manager{
		{"swdt-homebrew.rb", []string{"darwin", "linux"}, homebrewSources},
		{"swdt-scoop.json", []string{"windows"}, scoopSources},
		{"swdt-dev.swdt.installer.yaml", []string{"windows"}, wingetSources},
		{"swdt-krew.yaml", []string{"darwin", "linux", "windows"}, krewSources},
	}
}

// manifests compares the hash that each package manager would see with that of the archive. A manifest names
// exactly the archives of its systems.
func (r *release) manifests() error {
	var problems []error
	for _, m := range managers() {
		if err := r.manifest(m); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", m.file, err))
		}
	}
	for _, name := range []string{"swdt-dev.swdt.yaml", "swdt-dev.swdt.locale.en-US.yaml"} {
		if err := r.wingetHead(name); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(problems...)
}

func (r *release) manifest(m manager) error {
	text, err := r.read(m.file)
	if err != nil {
		return err
	}
	got, err := m.sources(text, r.version)
	if err != nil {
		return err
	}
	var problems []error
	for _, system := range m.systems {
		archives, err := filepath.Glob(filepath.Join(r.folder, "swdt_"+r.version+"_"+system+"_*"))
		if err != nil {
			return err
		}
		for _, archive := range archives {
			sum, err := checksum.Of(archive)
			if err != nil {
				return err
			}
			address := "https://github.com/swdt-dev/swdt/releases/download/v" + r.version + "/" + filepath.Base(archive)
			if got[address] != sum {
				problems = append(problems, fmt.Errorf("%s has the hash %q, and the archive %s", address, got[address], sum))
			}
			delete(got, address)
		}
	}
	for _, address := range slices.Sorted(maps.Keys(got)) {
		problems = append(problems, fmt.Errorf("%s leads to no archive", address))
	}
	return errors.Join(problems...)
}

var (
	rubyOpens  = regexp.MustCompile(`(?m)^\s*(class|def)\b|\bdo$`)
	rubyEnds   = regexp.MustCompile(`(?m)^\s*end$`)
	rubySource = regexp.MustCompile(`url "([^"]+)"\n\s*sha256 "([0-9a-f]{64})"`)
)

// homebrewSources reads the formula without Ruby: its blocks must at least be closed.
func homebrewSources(text []byte, version string) (map[string]string, error) {
	if opened, closed := len(rubyOpens.FindAll(text, -1)), len(rubyEnds.FindAll(text, -1)); opened != closed {
		return nil, fmt.Errorf("it opens %d blocks and closes %d", opened, closed)
	}
	if !strings.Contains(string(text), "\n  version \""+version+"\"\n") {
		return nil, errors.New("it has another version")
	}
	all := map[string]string{}
	for _, found := range rubySource.FindAllSubmatch(text, -1) {
		all[string(found[1])] = string(found[2])
	}
	return all, nil
}

func scoopSources(text []byte, version string) (map[string]string, error) {
	var document struct {
		Version      string
		Architecture map[string]struct{ URL, Hash string }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for source := range maps.Values(document.Architecture) {
		all[source.URL] = source.Hash
	}
	return all, sameVersion(document.Version, version)
}

func wingetSources(text []byte, version string) (map[string]string, error) {
	var document struct {
		Version    string `yaml:"PackageVersion"`
		Installers []struct {
			URL    string `yaml:"InstallerUrl"`
			SHA256 string `yaml:"InstallerSha256"`
		} `yaml:"Installers"`
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, source := range document.Installers {
		all[source.URL] = strings.ToLower(source.SHA256)
	}
	return all, sameVersion(document.Version, version)
}

func krewSources(text []byte, version string) (map[string]string, error) {
	var document struct {
		Spec struct {
			Version   string `yaml:"version"`
			Platforms []struct {
				URI    string `yaml:"uri"`
				SHA256 string `yaml:"sha256"`
			} `yaml:"platforms"`
		} `yaml:"spec"`
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, source := range document.Spec.Platforms {
		all[source.URI] = source.SHA256
	}
	return all, sameVersion(document.Spec.Version, "v"+version)
}

// wingetHead checks one of the two manifests of winget that name no archive.
func (r *release) wingetHead(name string) error {
	text, err := r.read(name)
	if err != nil {
		return err
	}
	var document struct {
		ID      string `yaml:"PackageIdentifier"`
		Version string `yaml:"PackageVersion"`
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		return err
	}
	if document.ID != "swdt-dev.swdt" {
		return fmt.Errorf("it is of the package %q", document.ID)
	}
	return sameVersion(document.Version, r.version)
}

func sameVersion(got, want string) error {
	if got != want {
		return fmt.Errorf("it has the version %q, not %q", got, want)
	}
	return nil
}
