// Package media reads the ISO files from which swdt makes Windows VMs: a user's Windows
// installation media, and the driver disc virtio-win. It lists the editions of Windows, finds an
// edition by the words of a node file, computes and compares the hash, and finds drivers. It only
// reads, works the same on Linux, macOS and Windows, and trusts no byte of an ISO file.
//
//   - media.go: Inspect and what it returns
//   - open.go: the file system of an ISO
//   - editions.go: the file with the editions, and the names of Windows versions
//   - choose.go: finds an edition by the words of a node file
//   - boot.go: whether firmware can start the ISO
//   - hash.go: SHA-256, and the media that swdt knows
//   - drivers.go: driver folders of virtio-win
//   - report.go: the result of `swdt vm image inspect`
//
// The formats have packages of their own: wim, and udf and iso9660, which both use discfs.
package media

import (
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Kind is the purpose of an ISO.
type Kind string

const (
	KindWindows Kind = "windows" // the ISO installs Windows
	KindDrivers Kind = "drivers" // the ISO holds virtio drivers for Windows
)

// Media describes an ISO.
type Media struct {
	Kind      Kind   `json:"kind"`
	Format    string `json:"format"` // udf or iso9660
	Label     string `json:"label"`
	SizeBytes int64  `json:"sizeBytes"`
	// Product is the version of Windows for people, such as Windows Server 2022; "" if it
	// is unknown.
	Product string `json:"product"`
	// Version is the highest version of the editions, such as 10.0.20348.587.
	Version string `json:"version"`
	// Architecture is the processor that all editions are for: amd64, arm64, x86, arm or ia64; ""
	// if the editions differ or the processor is unknown.
	Architecture    string   `json:"architecture"`
	Evaluation      bool     `json:"evaluation"` // at least one edition expires, and takes no product key
	Languages       []string `json:"languages"`  // of all editions
	DefaultLanguage string   `json:"defaultLanguage"`
	// DriverVersion is the name of virtio-win's folders for this Windows, such as 2k22; "" if swdt
	// knows no such name.
	DriverVersion string         `json:"driverVersion"`
	Image         ImageFile      `json:"image"`
	Editions      []Edition      `json:"editions"`
	Boot          Boot           `json:"boot"`
	Drivers       []DriverChoice `json:"drivers"` // of an ISO with drivers
	// Findings are remarks about an installation from the ISO; a finding of severity error prevents
	// the installation.
	Findings []finding.Finding `json:"findings"`
}

// asPublished is the remedy for an ISO that was changed.
const asPublished = "use an ISO as Microsoft publishes it"

// UnknownError reports an ISO that holds neither Windows nor drivers.
type UnknownError struct {
	Label string
	Found []string // names in the root folder, at most ten
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the ISO with the label %q has no sources/install.wim, .esd or .swm, and no virtio drivers "+
		"(its root holds %q); use the ISO of a Windows installation or of virtio-win", e.Label, e.Found)
}

// Inspect reads an ISO of size bytes. If the ISO is damaged or cut short, the error says so. If the
// ISO holds neither Windows nor drivers, the error is an *UnknownError. Other reasons against an
// installation from the ISO are findings.
func Inspect(r io.ReaderAt, size int64) (Media, error) {
	d, err := Open(r, size)
	if err != nil {
		return Media{}, err
	}
	m := Media{
		Format: d.Format, Label: d.Label, SizeBytes: size,
		Languages: []string{}, Editions: []Edition{}, Drivers: []DriverChoice{}, Findings: []finding.Finding{},
		Boot: Boot{Files: []BootFile{}},
	}
	if err := m.checkWhole(d); err != nil {
		return Media{}, err
	}
	found, err := m.readEditions(d)
	if err != nil {
		return Media{}, err
	}
	if found {
		m.Kind = KindWindows
		return m, m.describe(r, d)
	}
	if m.Drivers, err = driverChoices(d); err != nil {
		return Media{}, err
	}
	if len(m.Drivers) == 0 {
		return Media{}, unknown(d)
	}
	m.Kind = KindDrivers
	return m, nil
}

// checkWhole returns an error if the file lacks a part of its file system that holds files. If the
// missing part holds no files, checkWhole adds a warning.
func (m *Media) checkWhole(d *Disc) error {
	if d.Missing == 0 {
		return nil
	}
	if err := d.Whole(); err != nil {
		return err
	}
	m.find(finding.Warning, "compare its SHA-256 with the published one",
		"the file lacks the last %s of its file system, which hold no files", ui.Size(d.Missing))
	return nil
}

// describe adds the values and findings that follow from the editions and from other files of the
// ISO.
func (m *Media) describe(r io.ReaderAt, d *Disc) error {
	m.summarize()
	if err := m.readBoot(r, d); err != nil {
		return err
	}
	if m.Architecture != "amd64" {
		m.find(finding.Error, "use an ISO for x64",
			"the editions are not all for 64-bit Intel and AMD processors (amd64)")
	}
	return nil
}

func (m *Media) find(severity finding.Severity, remedy, what string, args ...any) {
	m.Findings = append(m.Findings, finding.New("", what, args...).As(severity).Remedied("%s", remedy))
}

func unknown(d *Disc) error {
	e := &UnknownError{Label: d.Label}
	entries, err := fs.ReadDir(d, ".")
	if err != nil {
		return err
	}
	for _, entry := range entries[:min(len(entries), 10)] {
		e.Found = append(e.Found, entry.Name())
	}
	return e
}

// union returns the first list of languages, followed by those of the second list that the first
// lacks.
func union(all, more []string) []string {
	for _, one := range more {
		if one != "" && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}
