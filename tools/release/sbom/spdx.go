package sbom

// documentID and unknown are words of SPDX.
const (
	documentID = "SPDXRef-DOCUMENT"
	unknown    = "NOASSERTION"
)

type document struct {
	SPDXVersion       string         `json:"spdxVersion"`
	DataLicense       string         `json:"dataLicense"`
	SPDXID            string         `json:"SPDXID"`
	Name              string         `json:"name"`
	DocumentNamespace string         `json:"documentNamespace"`
	CreationInfo      creationInfo   `json:"creationInfo"`
	Packages          []spdxPackage  `json:"packages"`
	Relationships     []relationship `json:"relationships"`
}

type creationInfo struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	SPDXID           string            `json:"SPDXID"`
	Name             string            `json:"name"`
	VersionInfo      string            `json:"versionInfo"`
	Purpose          string            `json:"primaryPackagePurpose,omitempty"`
	DownloadLocation string            `json:"downloadLocation"`
	FilesAnalyzed    bool              `json:"filesAnalyzed"`
	LicenseConcluded string            `json:"licenseConcluded"`
	LicenseDeclared  string            `json:"licenseDeclared"`
	CopyrightText    string            `json:"copyrightText"`
	Checksums        []packageChecksum `json:"checksums,omitempty"`
	ExternalRefs     []externalRef     `json:"externalRefs,omitempty"`
}

type packageChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type externalRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// add adds a package. purl is its package URL; empty: it has none.
func (d *document) add(id, name, version, licence, purl string) {
	one := spdxPackage{SPDXID: id, Name: name, VersionInfo: version, DownloadLocation: unknown,
		LicenseConcluded: unknown, LicenseDeclared: licence, CopyrightText: unknown}
	if purl != "" {
		one.ExternalRefs = []externalRef{{Category: "PACKAGE-MANAGER", Type: "purl", Locator: purl}}
	}
	d.Packages = append(d.Packages, one)
}

func (d *document) relate(from, kind, to string) {
	d.Relationships = append(d.Relationships, relationship{from, kind, to})
}
