package manifest

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scoopManifest is Scoop's manifest of an app.
type scoopManifest struct {
	Version      string                 `json:"version"`
	Description  string                 `json:"description"`
	Homepage     string                 `json:"homepage"`
	License      string                 `json:"license"`
	Architecture map[string]scoopSource `json:"architecture"`
	Bin          string                 `json:"bin"`
}

type scoopSource struct {
	URL  string `json:"url"`
	Hash string `json:"hash"`
}

func (r Release) scoop(all map[string][]byte) error {
	m := scoopManifest{Version: r.Version.Semver, Description: description, Homepage: homepage, License: licence,
		Architecture: map[string]scoopSource{}, Bin: "swdt.exe"}
	for scoop, arch := range map[string]string{"64bit": "amd64", "arm64": "arm64"} {
		a, err := r.archive("windows", arch)
		if err != nil {
			return err
		}
		m.Architecture[scoop] = scoopSource{r.url(a), a.SHA256}
	}
	text, err := json.MarshalIndent(m, "", "    ")
	all["swdt-scoop.json"] = append(text, '\n')
	return err
}

const (
	wingetName    = "swdt-dev.swdt"
	wingetVersion = "1.6.0" // of the manifests' schema
)

// wingetHead begins each of winget's three manifests.
type wingetHead struct {
	PackageIdentifier string `yaml:"PackageIdentifier"`
	PackageVersion    string `yaml:"PackageVersion"`
}

type wingetTail struct {
	ManifestType    string `yaml:"ManifestType"`
	ManifestVersion string `yaml:"ManifestVersion"`
}

type wingetVersionManifest struct {
	wingetHead    `yaml:",inline"`
	DefaultLocale string `yaml:"DefaultLocale"`
	wingetTail    `yaml:",inline"`
}

type wingetLocale struct {
	wingetHead       `yaml:",inline"`
	PackageLocale    string `yaml:"PackageLocale"`
	Publisher        string `yaml:"Publisher"`
	PackageName      string `yaml:"PackageName"`
	PackageURL       string `yaml:"PackageUrl"`
	License          string `yaml:"License"`
	ShortDescription string `yaml:"ShortDescription"`
	wingetTail       `yaml:",inline"`
}

type wingetInstallers struct {
	wingetHead          `yaml:",inline"`
	InstallerType       string            `yaml:"InstallerType"`
	NestedInstallerType string            `yaml:"NestedInstallerType"`
	NestedFiles         []wingetFile      `yaml:"NestedInstallerFiles"`
	ReleaseDate         string            `yaml:"ReleaseDate"`
	Installers          []wingetInstaller `yaml:"Installers"`
	wingetTail          `yaml:",inline"`
}

type wingetFile struct {
	RelativeFilePath     string `yaml:"RelativeFilePath"`
	PortableCommandAlias string `yaml:"PortableCommandAlias"`
}

type wingetInstaller struct {
	Architecture    string `yaml:"Architecture"`
	InstallerURL    string `yaml:"InstallerUrl"`
	InstallerSha256 string `yaml:"InstallerSha256"`
}

func (r Release) winget(all map[string][]byte) error {
	head := wingetHead{wingetName, r.Version.Semver}
	tail := func(kind string) wingetTail { return wingetTail{kind, wingetVersion} }
	installers := wingetInstallers{wingetHead: head, InstallerType: "zip", NestedInstallerType: "portable",
		NestedFiles: []wingetFile{{"swdt.exe", "swdt"}}, ReleaseDate: r.Time.Format("2006-01-02"),
		wingetTail: tail("installer")}
	for _, cpu := range []struct{ winget, arch string }{{"x64", "amd64"}, {"arm64", "arm64"}} {
		a, err := r.archive("windows", cpu.arch)
		if err != nil {
			return err
		}
		installers.Installers = append(installers.Installers,
			wingetInstaller{cpu.winget, r.url(a), strings.ToUpper(a.SHA256)})
	}
	for name, document := range map[string]any{
		wingetName + ".yaml":           wingetVersionManifest{head, "en-US", tail("version")},
		wingetName + ".installer.yaml": installers,
		wingetName + ".locale.en-US.yaml": wingetLocale{head, "en-US", "swdt-dev", "swdt", homepage, licence,
			description, tail("defaultLocale")},
	} {
		text, err := marshal(document)
		if err != nil {
			return err
		}
		all[name] = text
	}
	return nil
}

func marshal(document any) ([]byte, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(document); err != nil {
		return nil, err
	}
	err := encoder.Close()
	return b.Bytes(), err
}
