package inspect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// unknown is the licence of a module of which no file with a licence is linked.
const unknown = "NOASSERTION"

// spdx has the fields of the list of modules that are compared.
type spdx struct {
	Packages []struct {
		SPDXID, Name    string
		LicenseDeclared string
		Checksums       []struct{ ChecksumValue string }
		ExternalRefs    []struct{ ReferenceLocator string }
	}
	Relationships []struct{ SPDXElementID, RelationshipType, RelatedSPDXElement string }
}

// modules compares the list of modules with what Go has recorded in the program of each archive, and each
// licence in the list with the texts in the archive.
func (r *release) modules(archives []unpacked) error {
	text, err := r.read("swdt_" + r.version + ".spdx.json")
	if err != nil {
		return err
	}
	var list spdx
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("read the list of modules: %w", err)
	}
	var problems []error
	for _, a := range archives {
		modules, err := modulesOf(a)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		_, withText := readNotices(string(a.files["THIRD_PARTY_NOTICES"]))
		sum := sha256.Sum256(a.files[a.target.Program()])
		listed, found := list.modulesOf(hex.EncodeToString(sum[:]))
		if !found {
			problems = append(problems, fmt.Errorf("the list of modules has no program with the hash of that in %s", a.name))
			continue
		}
		for _, m := range modules {
			switch licence := listed[m.purl()]; {
			case licence == "":
				problems = append(problems, fmt.Errorf("%s is in the program of %s, and not in its list of modules", m, a.name))
			case licence != unknown && !withText[m.String()]:
				problems = append(problems, fmt.Errorf("%s is under %s, and %s has no text of it", m, licence, a.name))
			}
			delete(listed, m.purl())
		}
		for _, extra := range slices.Sorted(maps.Keys(listed)) {
			problems = append(problems, fmt.Errorf("%s is in the list of modules of %s, and not in its program", extra, a.name))
		}
	}
	return errors.Join(problems...)
}

// modulesOf returns the licence of each module that the program with a hash depends on.
func (l spdx) modulesOf(sum string) (listed map[string]string, found bool) {
	programs, licences := map[string]bool{}, map[string][2]string{}
	for _, p := range l.Packages {
		for _, c := range p.Checksums {
			if c.ChecksumValue == sum {
				programs[p.SPDXID] = true
			}
		}
		for _, reference := range p.ExternalRefs {
			licences[p.SPDXID] = [2]string{reference.ReferenceLocator, p.LicenseDeclared}
		}
	}
	listed = map[string]string{}
	for _, relation := range l.Relationships {
		if relation.RelationshipType == "DEPENDS_ON" && programs[relation.SPDXElementID] {
			purl := licences[relation.RelatedSPDXElement]
			listed[purl[0]] = purl[1]
		}
	}
	return listed, len(programs) > 0
}
