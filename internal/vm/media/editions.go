package media

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm/media/wim"
)

// ImageFile is the file that holds the editions.
type ImageFile struct {
	Path        string `json:"path"`        // such as sources/install.wim; the first part if the image is split
	Parts       int    `json:"parts"`       // 1, or the number of files of a split image
	Compression string `json:"compression"` // none, XPRESS, LZX or LZMS
	Solid       bool   `json:"solid"`       // many files are compressed together, as in install.esd
	SizeBytes   int64  `json:"sizeBytes"`   // size of the file; of its first part if the image is split
}

// Edition is an edition of Windows on an ISO. Text that the ISO lacks is "".
type Edition struct {
	Index int `json:"index"` // counts from 1; selects the edition in Windows Setup
	// Word is the word for this edition in node files: standard-core, standard, datacenter-core or
	// datacenter; "" if no word names only this edition.
	Word             string   `json:"word"`
	Name             string   `json:"name"`             // such as Windows Server 2022 SERVERSTANDARDCORE
	DisplayName      string   `json:"displayName"`      // such as Windows Server 2022 Standard Evaluation
	EditionID        string   `json:"editionID"`        // such as ServerStandardEval
	InstallationType string   `json:"installationType"` // Server Core, Server or Client
	Architecture     string   `json:"architecture"`
	Product          string   `json:"product"`          // such as Microsoft® Windows® Operating System
	Version          string   `json:"version"`          // such as 10.0.20348.587
	Build            int      `json:"build"`            // such as 20348
	ServicePackBuild int      `json:"servicePackBuild"` // such as 587
	Evaluation       bool     `json:"evaluation"`
	Languages        []string `json:"languages"`
	DefaultLanguage  string   `json:"defaultLanguage"`
	InstalledBytes   int64    `json:"installedBytes"`
}

// readEditions reads the editions from the first of the files that may hold editions. It reports
// whether there is such a file.
func (m *Media) readEditions(d *Disc) (bool, error) {
	var others []string
	for _, path := range []string{"sources/install.wim", "sources/install.esd", "sources/install.swm"} {
		r, size, ok, err := readerAt(d, path)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		if m.Image.Path != "" {
			others = append(others, path)
			continue
		}
		info, err := wim.Read(r, size)
		if err != nil {
			return false, readError(path, err)
		}
		m.Image = ImageFile{
			Path: path, Parts: info.Parts, Compression: info.Compression, Solid: info.Solid, SizeBytes: size,
		}
		for _, image := range info.Images {
			m.Editions = append(m.Editions, editionOf(image, info.Images))
		}
		if err := m.checkParts(d, info); err != nil {
			return false, err
		}
	}
	if len(others) > 0 {
		m.find(finding.Warning, asPublished,
			"the ISO also has %s: Windows Setup uses only one of these files", strings.Join(others, " and "))
	}
	return m.Image.Path != "", nil
}

// readError adds a remedy to an error of package wim.
func readError(path string, err error) error {
	if broken := (*wim.Error)(nil); errors.As(err, &broken) {
		return fmt.Errorf("read the editions in %s: %w; the ISO is damaged: download or copy it again", path, err)
	}
	return fmt.Errorf("read the editions: %w", err)
}

// checkParts adds findings about the file with the editions: that it is compressed as a whole, that
// it has no edition, that it is not the first part, that there are several parts, and which parts are
// missing (at most ten).
func (m *Media) checkParts(d *Disc, info wim.Info) error {
	if info.Solid {
		m.find(finding.Info, "", "%s is compressed as a whole (ESD): the installation takes longer", m.Image.Path)
	}
	if len(info.Images) == 0 {
		m.find(finding.Error, asPublished, "%s holds no edition of Windows", m.Image.Path)
	}
	if info.Part != 1 {
		m.find(finding.Error, asPublished, "%s is part %d of %d, not the first", m.Image.Path, info.Part, info.Parts)
	}
	if info.Parts == 1 {
		return nil
	}
	m.find(finding.Info, "", "the editions are split into %d files (install.swm, install2.swm and so on)", info.Parts)
	var missing []string
	for part := 2; part <= info.Parts && len(missing) < 10; part++ {
		path := fmt.Sprintf("sources/install%d.swm", part)
		_, _, ok, err := readerAt(d, path)
		if err != nil {
			return err
		}
		if !ok {
			missing = append(missing, path)
		}
	}
	if len(missing) > 0 {
		m.find(finding.Error, asPublished, "parts of the split image are missing: %s", strings.Join(missing, ", "))
	}
	return nil
}

func editionOf(i wim.Image, all []wim.Image) Edition {
	e := Edition{
		Index: i.Index, Word: word(i), Name: i.Name, DisplayName: i.DisplayName,
		EditionID: i.Edition, InstallationType: i.Installation, Evaluation: strings.HasSuffix(i.Edition, "Eval"),
		Architecture: i.Architecture, Product: i.Product, Build: i.Build, ServicePackBuild: i.ServicePack,
		Languages: i.Languages, DefaultLanguage: i.DefaultLanguage, InstalledBytes: i.Bytes,
	}
	if i.Build != 0 {
		e.Version = fmt.Sprintf("%d.%d.%d.%d", i.Major, i.Minor, i.Build, i.ServicePack)
	}
	for _, other := range all {
		if other.Index != i.Index && e.Word != "" && word(other) == e.Word {
			e.Word = "" // the word would name several editions
		}
	}
	return e
}

// word returns the word for an edition in node files, or "".
func word(i wim.Image) string {
	core := map[string]string{"Server Core": "-core", "Server": ""}
	suffix, server := core[i.Installation]
	if !server {
		return ""
	}
	switch strings.TrimSuffix(i.Edition, "Eval") {
	case "ServerStandard":
		return "standard" + suffix
	case "ServerDatacenter":
		return "datacenter" + suffix
	}
	return ""
}

// summarize fills the fields of m that describe all editions together.
func (m *Media) summarize() {
	var build [2]int
	for i, e := range m.Editions {
		m.Languages = union(m.Languages, e.Languages)
		m.Evaluation = m.Evaluation || e.Evaluation
		if i == 0 {
			m.Architecture, m.DefaultLanguage = e.Architecture, e.DefaultLanguage
		}
		if e.Architecture != m.Architecture {
			m.Architecture = ""
		}
		if e.DefaultLanguage != m.DefaultLanguage {
			m.DefaultLanguage = ""
		}
		if newest := [2]int{e.Build, e.ServicePackBuild}; slices.Compare(newest[:], build[:]) > 0 {
			m.Version, build = e.Version, newest
			m.Product, m.DriverVersion = productOf(e.Build, strings.HasPrefix(e.InstallationType, "Server"))
		}
	}
}

// productOf returns the name of a version of Windows, and the name of the folders for this version
// on virtio-win. Both are "" for a version that swdt does not know.
func productOf(build int, server bool) (name, drivers string) {
	if !server {
		switch {
		case build >= 22000:
			return "Windows 11", "w11"
		case build >= 10240:
			return "Windows 10", "w10"
		}
		return "", ""
	}
	switch build {
	case 14393:
		return "Windows Server 2016", "2k16"
	case 17763:
		return "Windows Server 2019", "2k19"
	case 20348:
		return "Windows Server 2022", "2k22"
	case 26100:
		return "Windows Server 2025", "2k25"
	}
	return "", ""
}

// Product returns the name of an edition's version of Windows, such as Windows Server 2022, and the
// name of the folders for this version on virtio-win, such as 2k22. Both are "" for a version that
// swdt does not know.
func Product(e Edition) (name, drivers string) {
	return productOf(e.Build, strings.HasPrefix(e.InstallationType, "Server"))
}
