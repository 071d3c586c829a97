// Package sbom lists what the programs of a release are made of, as SPDX 2.3 in JSON. It reads the modules
// from the programs themselves, in which Go records them.
//
// sbom.go collects, spdx.go has the types of the document.
package sbom

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/tools/release/checksum"
)

// Program is a program of the release, or one that is inside another.
type Program struct {
	Name   string
	Path   string
	Inside []string // the names of the programs that it carries
}

// Release says what the document is of.
type Release struct {
	Version  string
	Time     time.Time
	Programs []Program
	Notices  string // THIRD_PARTY_NOTICES, which lists the licences of modules
}

const standardLibrary = "Go standard library"

// Write returns the document.
func (r Release) Write() ([]byte, error) {
	d := &document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: documentID, Name: "swdt-" + r.Version,
		DocumentNamespace: "https://github.com/swdt-dev/swdt/releases/download/v" + r.Version + "/sbom",
		CreationInfo: creationInfo{Created: r.Time.UTC().Format(time.RFC3339),
			Creators: []string{"Organization: swdt-dev", "Tool: swdt-tools-release"}},
	}
	licences := licencesOf(r.Notices)
	modules := map[string]bool{}
	for _, p := range r.Programs {
		if err := d.addProgram(p, r.Version, licences, modules); err != nil {
			return nil, fmt.Errorf("list the modules of %s: %w", p.Name, err)
		}
	}
	carried := map[string]bool{}
	for _, p := range r.Programs {
		for _, inside := range p.Inside {
			carried[inside] = true
			d.relate(programID(p.Name), "CONTAINS", programID(inside))
		}
	}
	for _, p := range r.Programs {
		if !carried[p.Name] {
			d.relate(documentID, "DESCRIBES", programID(p.Name))
		}
	}
	text, err := json.MarshalIndent(d, "", "  ")
	return append(text, '\n'), err
}

// addProgram adds a program and those of its modules that the document does not have yet.
func (d *document) addProgram(p Program, version string, licences map[string]string, known map[string]bool) error {
	sum, err := checksum.Of(p.Path)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(p.Path)
	if err != nil {
		return err
	}
	id := programID(p.Name)
	d.add(id, p.Name, version, "Apache-2.0", "")
	added := &d.Packages[len(d.Packages)-1]
	added.Checksums = []packageChecksum{{Algorithm: "SHA256", Value: sum}}
	added.Purpose = "APPLICATION"
	modules := []module{{standardLibrary, strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, module{m.Path, m.Version})
	}
	for _, m := range modules {
		if !known[m.id()] {
			known[m.id()] = true
			d.add(m.id(), m.path, m.version, m.licence(licences), m.purl())
		}
		d.relate(id, "DEPENDS_ON", m.id())
	}
	return nil
}

type module struct{ path, version string }

func (m module) id() string { return identifier("Module", m.path+"-"+m.version) }

func (m module) purl() string {
	if m.path == standardLibrary {
		return "pkg:golang/stdlib@" + m.version
	}
	return "pkg:golang/" + m.path + "@" + m.version
}

// licence returns the licences that the notices list. A module of which no file with a licence is linked
// has none there.
func (m module) licence(licences map[string]string) string {
	if m.path == standardLibrary {
		return licences[standardLibrary]
	}
	if found := licences[m.path+" "+m.version]; found != "" {
		return found
	}
	return unknown
}

func programID(name string) string { return identifier("Program", name) }

var notInIdentifiers = regexp.MustCompile(`[^0-9A-Za-z.-]+`)

func identifier(kind, name string) string {
	return "SPDXRef-" + kind + "-" + notInIdentifiers.ReplaceAllString(name, "-")
}

// licencesOf returns the licences that the list at the beginning of the notices gives for each module.
func licencesOf(notices string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(notices) {
		if strings.HasPrefix(line, "=====") {
			break
		}
		if name, names, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			all[name] = strings.Join(slices.Collect(strings.SplitSeq(names, ", ")), " AND ")
		}
	}
	return all
}
