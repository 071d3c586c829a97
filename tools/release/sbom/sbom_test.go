package sbom_test

import (
	"debug/buildinfo"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/tools/release/sbom"
)

type document struct {
	Packages []struct {
		SPDXID, Name, VersionInfo, LicenseDeclared string
		ExternalRefs                               []struct{ ReferenceLocator string }
	}
	Relationships []struct{ SPDXElementID, RelationshipType, RelatedSPDXElement string }
}

// TestEveryModuleIsListed lists the modules of the command release, and compares them with what Go has
// recorded in it.
func TestEveryModuleIsListed(t *testing.T) {
	program := filepath.Join(t.TempDir(), "release")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "..").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) == 0 {
		t.Fatal("the program links no module, so it proves nothing")
	}
	signer := "aead.dev/minisign"
	version := versionOf(info, signer)
	text, err := sbom.Release{Version: "1.4.0", Time: time.Unix(1_800_000_000, 0),
		Notices:  "Go standard library: BSD-3-Clause\n" + signer + " " + version + ": BSD-3-Clause, MIT\n",
		Programs: []sbom.Program{{Name: "inside", Path: program}, {Name: "swdt", Path: program, Inside: []string{"inside"}}},
	}.Write()
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	purls, ids := map[string]string{}, map[string]int{}
	for _, p := range d.Packages {
		ids[p.SPDXID]++
		for _, reference := range p.ExternalRefs {
			purls[reference.ReferenceLocator] = p.LicenseDeclared
		}
	}
	for _, m := range info.Deps {
		if purl := "pkg:golang/" + m.Path + "@" + m.Version; purls[purl] == "" {
			t.Errorf("%s is linked and not listed", purl)
		}
	}
	if len(purls) != len(info.Deps)+1 {
		t.Errorf("got %d modules, want %d and the standard library", len(purls), len(info.Deps))
	}
	if got := purls["pkg:golang/"+signer+"@"+version]; got != "BSD-3-Clause AND MIT" {
		t.Errorf("got the licences %q of minisign", got)
	}
	for id, times := range ids {
		if times != 1 {
			t.Errorf("%s is defined %d times", id, times)
		}
	}
	testRelations(t, d, ids)
}

func versionOf(info *buildinfo.BuildInfo, path string) string {
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return ""
}

func testRelations(t *testing.T, d document, ids map[string]int) {
	var described, contained []string
	for _, r := range d.Relationships {
		if ids[r.RelatedSPDXElement] == 0 {
			t.Errorf("%v leads to nothing", r)
		}
		switch r.RelationshipType {
		case "DESCRIBES":
			described = append(described, r.RelatedSPDXElement)
		case "CONTAINS":
			contained = append(contained, r.RelatedSPDXElement)
		}
	}
	slices.Sort(described)
	if diff := cmp.Diff([]string{"SPDXRef-Program-swdt"}, described); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"SPDXRef-Program-inside"}, contained); diff != "" {
		t.Error(diff)
	}
}

func TestProgramWithoutModulesIsRefused(t *testing.T) {
	if _, err := (sbom.Release{Programs: []sbom.Program{{Name: "script", Path: "sbom_test.go"}}}).Write(); err == nil {
		t.Error("a file that is no program of Go is listed")
	}
}
