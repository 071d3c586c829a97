package media_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm/media"
	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
)

func open(t testing.TB, path string) (*os.File, int64) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	found, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return file, found.Size()
}

func inspect(t testing.TB, path string) media.Media {
	t.Helper()
	file, size := open(t, path)
	m, err := media.Inspect(file, size)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestInspect(t *testing.T) {
	path := mediatest.WindowsISO(t)
	got := inspect(t, path)
	_, size := open(t, path)
	edition := func(index int, word, name, display, id, kind string) media.Edition {
		return media.Edition{
			Index: index, Word: word, Name: "Windows Server 2022 " + name,
			DisplayName: "Windows Server 2022 " + display, EditionID: id,
			InstallationType: kind, Architecture: "amd64", Product: "Microsoft® Windows® Operating System",
			Version: "10.0.20348.587", Build: 20348,
			ServicePackBuild: 587, Evaluation: true, Languages: []string{"en-US"}, DefaultLanguage: "en-US",
			InstalledBytes: 2,
		}
	}
	want := media.Media{
		Kind: media.KindWindows, Format: "udf", Label: mediatest.WindowsLabel, SizeBytes: size,
		Product: "Windows Server 2022",
		Version: "10.0.20348.587", Architecture: "amd64", Evaluation: true, Languages: []string{"en-US"},
		DefaultLanguage: "en-US",
		DriverVersion:   "2k22",
		Image: media.ImageFile{Path: "sources/install.wim", Parts: 1, Compression: "LZX",
			SizeBytes: got.Image.SizeBytes},
		Editions: []media.Edition{
			edition(1, "standard-core", "SERVERSTANDARDCORE", "Standard Evaluation", "ServerStandardEval",
				"Server Core"),
			edition(2, "standard", "SERVERSTANDARD", "Standard Evaluation (Desktop Experience)", "ServerStandardEval",
				"Server"),
			edition(3, "datacenter-core", "SERVERDATACENTERCORE", "Datacenter Evaluation", "ServerDatacenterEval",
				"Server Core"),
			edition(4, "datacenter", "SERVERDATACENTER", "Datacenter Evaluation (Desktop Experience)",
				"ServerDatacenterEval", "Server"),
		},
		Boot: media.Boot{BIOS: true, UEFI: true, Files: []media.BootFile{
			{Path: "sources/boot.wim", Present: true}, {Path: "efi/boot/bootx64.efi", Present: true},
		}},
		Drivers: []media.DriverChoice{}, Findings: []finding.Finding{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// whats returns the texts of the findings of a severity.
func whats(m media.Media, severity finding.Severity) []string {
	var all []string
	for _, f := range m.Findings {
		if f.Severity == severity {
			all = append(all, f.What)
		}
	}
	return all
}

func TestFindings(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(t *testing.T, folder string)
		args     []string
		severity finding.Severity
		want     []string
	}{
		"no boot files": {
			func(t *testing.T, folder string) { remove(t, folder, "sources/boot.wim", "efi/boot/bootx64.efi") },
			mediatest.BootArguments(), finding.Error,
			[]string{"the ISO has no sources/boot.wim, which starts Windows Setup",
				"the ISO has no efi/boot/bootx64.efi, which starts Windows Setup"},
		},
		"no boot catalog": {
			func(*testing.T, string) {}, nil, finding.Error,
			[]string{"the ISO has no boot entry for UEFI; VMs of swdt start only by UEFI"},
		},
		"only BIOS": {
			func(*testing.T, string) {}, mediatest.BootArguments()[:3], finding.Error,
			[]string{"the ISO has no boot entry for UEFI; VMs of swdt start only by UEFI"},
		},
		"ARM": {
			func(t *testing.T, folder string) {
				mediatest.Run(t, "wiminfo", filepath.Join(folder, "sources/install.wim"), "1", "--image-property",
					"WINDOWS/ARCH=12")
			}, mediatest.BootArguments(), finding.Error,
			[]string{"the editions are not all for 64-bit Intel and AMD processors (amd64)"},
		},
		"two images": {
			func(t *testing.T, folder string) {
				mediatest.WIM(t, filepath.Join(folder, "sources", "install.esd"), mediatest.Server2022(), "--solid")
			}, mediatest.BootArguments(), finding.Warning,
			[]string{"the ISO also has sources/install.esd: Windows Setup uses only one of these files"},
		},
		"ESD": {
			func(t *testing.T, folder string) {
				remove(t, folder, "sources/install.wim")
				mediatest.WIM(t, filepath.Join(folder, "sources", "install.esd"), mediatest.Server2022(), "--solid")
			}, mediatest.BootArguments(), finding.Info,
			[]string{"sources/install.esd is compressed as a whole (ESD): the installation takes longer"},
		},
		"the wrong part": {
			func(t *testing.T, folder string) { split(t, folder, 2) }, mediatest.BootArguments(), finding.Error,
			[]string{"sources/install.swm is part 2 of 3, not the first",
				"parts of the split image are missing: sources/install2.swm, sources/install3.swm"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := mediatest.WindowsFolder(t)
			c.change(t, folder)
			m := inspect(t, mediatest.UDF(t, folder, "LABEL", c.args...))
			if diff := cmp.Diff(c.want, whats(m, c.severity)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSplitImage(t *testing.T) {
	folder := mediatest.WindowsFolder(t)
	split(t, folder, 1, 2, 3)
	m := inspect(t, mediatest.UDF(t, folder, "LABEL", mediatest.BootArguments()...))
	want := []string{"the editions are split into 3 files (install.swm, install2.swm and so on)"}
	if diff := cmp.Diff(want, whats(m, finding.Info)); diff != "" {
		t.Errorf("the findings (-want +got):\n%s", diff)
	}
	if len(m.Findings) != 1 {
		t.Errorf("%d findings, want 1: %+v", len(m.Findings), m.Findings)
	}
	if m.Image.Path != "sources/install.swm" || m.Image.Parts != 3 {
		t.Errorf("the image is %s of %d parts, want sources/install.swm of 3", m.Image.Path, m.Image.Parts)
	}
}

// split replaces install.wim by some parts of a split one, as install.swm, install2.swm and
// so on.
func split(t *testing.T, folder string, parts ...int) {
	t.Helper()
	content, into := t.TempDir(), t.TempDir()
	half := make([]byte, 900_000)
	for i := range half {
		half[i] = byte(i * i >> 7)
	}
	mediatest.Write(t, content, map[string]string{"a": string(half), "b": "b" + string(half), "c": "c" + string(half)})
	sources := filepath.Join(folder, "sources")
	install := filepath.Join(sources, "install.wim")
	mediatest.Run(t, "wimcapture", content, filepath.Join(into, "install.wim"), "Windows", "--compress=none")
	mediatest.Run(t, "wiminfo", filepath.Join(into, "install.wim"), "1", "--image-property", "WINDOWS/ARCH=9")
	mediatest.Run(t, "wimsplit", filepath.Join(into, "install.wim"), filepath.Join(into, "install.swm"), "1")
	names := []string{"install.swm", "install2.swm", "install3.swm"}
	for i, part := range parts {
		data, err := os.ReadFile(filepath.Join(into, names[part-1]))
		if err != nil {
			t.Fatal(err)
		}
		mediatest.Write(t, sources, map[string]string{names[i]: string(data)})
	}
	if err := os.Remove(install); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, folder string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNeitherWindowsNorDrivers(t *testing.T) {
	folder := t.TempDir()
	mediatest.Write(t, folder, map[string]string{"linux": "x", "\x1b[2J.txt": "x"})
	remove(t, folder, "\x1b[2J.txt")
	file, size := open(t, mediatest.UDF(t, folder, "DEBIAN"))
	_, err := media.Inspect(file, size)
	const want = `the ISO with the label "DEBIAN" has no sources/install.wim, .esd or .swm, ` +
		`and no virtio drivers (its root holds ["linux"]); ` +
		"use the ISO of a Windows installation or of virtio-win"
	var typed *media.UnknownError
	if !errors.As(err, &typed) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	_, err = media.Inspect(strings.NewReader("text"), 4)
	var format *discfs.FormatError
	if !errors.As(err, &format) || err.Error() != "the file is no ISO image; name an .iso file" {
		t.Error(err)
	}
}

// A file that was cut short is refused wherever that damages a file, and by name.
func TestInspectCutShort(t *testing.T) {
	file, size := open(t, mediatest.WindowsISO(t))
	m, err := media.Inspect(file, size)
	if err != nil {
		t.Fatal(err)
	}
	refused, warned := 0, 0
	for cut := size - 2048; cut > 20*2048; cut -= 5 * 2048 {
		got, err := media.Inspect(io.NewSectionReader(file, 0, cut), cut)
		var short *discfs.CutShortError
		var format *discfs.FormatError
		switch {
		case errors.As(err, &short):
			if refused++; short.Have != cut || short.Want <= cut {
				t.Errorf("%d bytes: %v", cut, err)
			}
		case errors.As(err, &format) && cut < 40*2048: // the mark of UDF itself is missing
		case err != nil:
			t.Errorf("%d bytes: %v", cut, err)
		default:
			if got.Editions[3].Name != m.Editions[3].Name {
				t.Errorf("%d bytes: %+v", cut, got.Editions)
			}
			if len(got.Findings) > 0 {
				warned++
			}
		}
	}
	if refused == 0 {
		t.Error("no cut was refused")
	}
	t.Logf("%d cuts refused, %d with a warning", refused, warned)
}

// The text of a hostile ISO only appears on a terminal, and controls nothing.
func TestReportOfHostileText(t *testing.T) {
	folder := mediatest.WindowsFolder(t)
	evil := "x\u202eevil\u009b2J"
	mediatest.Run(t, "wiminfo", filepath.Join(folder, "sources/install.wim"), "1", evil,
		"--image-property", "WINDOWS/LANGUAGES/LANGUAGE="+evil, "--image-property", "WINDOWS/EDITIONID="+evil)
	m := inspect(t, mediatest.UDF(t, folder, "LABEL"))
	if m.Editions[0].Name != evil {
		t.Fatalf("%q", m.Editions[0].Name)
	}
	m.Label = "a\x1b]0;title\x07\nb"
	m.Findings = append(m.Findings, finding.Finding{Severity: finding.Error, What: "\x1b[31m"})
	var out bytes.Buffer
	page := ui.NewPage(&out, false)
	if err := errors.Join(media.Report{File: "/tmp/\x1b[2J\u202e.iso", Media: m}.WriteText(page),
		page.Flush()); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\x07\u202e\u009b") {
		t.Errorf("%q", out.String())
	}
	_, err := m.Choose("\x1b[2J")
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\u202e\u009b") {
		t.Errorf("%q", err)
	}
}

func TestReport(t *testing.T) {
	path := mediatest.WindowsISO(t)
	r := media.Report{File: "/iso/SERVER_EVAL.iso", Media: inspect(t, path)}
	r.SizeBytes, r.Image.SizeBytes = 5_044_094_976, 4_500_000_000
	r.Sum = media.Sum{SHA256: "3e4fa6d8507b554856fc9ca6079cc402df11a8b79344871669f0251535255325"}
	r.Known = media.Known(r.SHA256)
	r.Findings = []finding.Finding{{Severity: finding.Warning, What: "something", Remedy: "do this"}}
	var out bytes.Buffer
	page := ui.NewPage(&out, false)
	if err := errors.Join(r.WriteText(page), page.Flush()); err != nil {
		t.Fatal(err)
	}
	const want = `/iso/SERVER_EVAL.iso: Windows Server 2022, evaluation, amd64, en-US, 5.0 GB
  label        SSS_X64FREE_EN-US_DV9
  version      10.0.20348.587
  editions in  sources/install.wim, 4.5 GB, compression LZX
  boot         UEFI, BIOS, sources/boot.wim, efi/boot/bootx64.efi
  sha256       3e4fa6d8507b554856fc9ca6079cc402df11a8b79344871669f0251535255325
               Windows Server 2022 evaluation, en-us, 20348.587

INDEX  EDITION          NAME                                      ID                    TYPE         VERSION
1      standard-core    Windows Server 2022 SERVERSTANDARDCORE    ServerStandardEval    Server Core  10.0.20348.587
2      standard         Windows Server 2022 SERVERSTANDARD        ServerStandardEval    Server       10.0.20348.587
3      datacenter-core  Windows Server 2022 SERVERDATACENTERCORE  ServerDatacenterEval  Server Core  10.0.20348.587
4      datacenter       Windows Server 2022 SERVERDATACENTER      ServerDatacenterEval  Server       10.0.20348.587

! warning  something
           → do this

In the node file:

spec:
  machine:
    image:
      iso: /iso/SERVER_EVAL.iso
      edition: standard-core
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every field of the result is always there.
func TestReportAsJSON(t *testing.T) {
	path := mediatest.VirtioISO(t, "2k22", "w11")
	encoded, err := json.Marshal(media.Report{File: "virtio-win.iso", Media: inspect(t, path)})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "sizeBytes")
	drivers := []any{"Balloon", "NetKVM", "vioserial", "viostor"}
	want := map[string]any{
		"file": "virtio-win.iso", "sha256": "", "known": "", "kind": "drivers", "format": "iso9660",
		"label":   "virtio-win-0.1.285",
		"product": "", "version": "", "architecture": "", "evaluation": false, "languages": []any{},
		"defaultLanguage": "", "driverVersion": "",
		"image":    map[string]any{"path": "", "parts": 0.0, "compression": "", "solid": false, "sizeBytes": 0.0},
		"editions": []any{}, "boot": map[string]any{"bios": false, "uefi": false, "files": []any{}},
		"findings": []any{},
		"drivers": []any{map[string]any{"version": "2k22", "drivers": drivers}, map[string]any{"version": "w11",
			"drivers": drivers}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
