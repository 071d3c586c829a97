// Package mediatest makes images of discs for tests. The tools of Debian make small images
// like Windows installation media and like virtio-win. Hostile images, which no tool makes,
// are written sector by sector.
//
//   - mediatest.go: the tools, and the images that they make
//   - sparse.go: images in memory
package mediatest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// Run runs a tool. If the tool is missing, Run skips the test. If the environment variable CI is
// true, it fails the test instead, since CI installs the tools with scripts/install-test-deps.sh.
func Run(t testing.TB, tool string, args ...string) {
	t.Helper()
	run(t, nil, tool, args...)
}

// run runs a tool. If output is not nil, run writes the tool's standard output to it.
func run(t testing.TB, output io.Writer, tool string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%v; run scripts/install-test-deps.sh", err)
		}
		t.Skipf("%v; run scripts/install-test-deps.sh", err)
	}
	var noise bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdout, cmd.Stderr = &noise, &noise
	if output != nil {
		cmd.Stdout = output
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s", tool, args, err, &noise)
	}
}

// Write writes files below folder. The keys of the map are paths relative to folder, with slashes;
// its values are the contents.
func Write(t testing.TB, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// UDF makes an image of a folder in the format of Windows media, UDF 1.02 beside ISO 9660, and
// returns the path of the image. args are further arguments of genisoimage.
func UDF(t testing.TB, folder, label string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "udf.iso")
	format := []string{"-quiet", "-udf", "-input-charset", "utf-8", "-iso-level", "3", "-allow-limited-size"}
	args = append(append(format, "-V", label), args...)
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := &sparseWriter{file: out}
	run(t, w, "genisoimage", append(args, folder)...)
	if err := errors.Join(out.Truncate(w.size), out.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

// Joliet makes an image of a folder in the format of virtio-win, ISO 9660 with Joliet and Rock
// Ridge, and returns the path of the image. args are further arguments of xorriso's mkisofs.
func Joliet(t testing.TB, folder, label string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "joliet.iso")
	args = append([]string{"-as", "mkisofs", "-quiet", "-r", "-J", "-joliet-long", "-V", label, "-o", file}, args...)
	Run(t, "xorriso", append(args, folder)...)
	return file
}

// Edition is an edition of Windows in an image file.
type Edition struct {
	Name       string
	Properties map[string]string // elements of the XML document, such as WINDOWS/EDITIONID, with their texts
}

// Server2022 returns the four editions of the evaluation media of Windows Server 2022.
func Server2022() []Edition {
	edition := func(name, display, id, installation string) Edition {
		return Edition{Name: "Windows Server 2022 " + name, Properties: map[string]string{
			"DISPLAYNAME":       "Windows Server 2022 " + display,
			"WINDOWS/EDITIONID": id, "WINDOWS/INSTALLATIONTYPE": installation, "WINDOWS/ARCH": "9",
			"WINDOWS/PRODUCTNAME": "Microsoft® Windows® Operating System", "WINDOWS/PRODUCTTYPE": "ServerNT",
			"WINDOWS/VERSION/MAJOR": "10", "WINDOWS/VERSION/MINOR": "0",
			"WINDOWS/VERSION/BUILD": "20348", "WINDOWS/VERSION/SPBUILD": "587",
			"WINDOWS/LANGUAGES/LANGUAGE": "en-US", "WINDOWS/LANGUAGES/DEFAULT": "en-US",
		}}
	}
	return []Edition{
		edition("SERVERSTANDARDCORE", "Standard Evaluation", "ServerStandardEval", "Server Core"),
		edition("SERVERSTANDARD", "Standard Evaluation (Desktop Experience)", "ServerStandardEval", "Server"),
		edition("SERVERDATACENTERCORE", "Datacenter Evaluation", "ServerDatacenterEval", "Server Core"),
		edition("SERVERDATACENTER", "Datacenter Evaluation (Desktop Experience)", "ServerDatacenterEval", "Server"),
	}
}

// WIM makes an image file with editions that hold one tiny file each. args are further arguments of
// wimcapture, such as --solid.
func WIM(t testing.TB, file string, editions []Edition, args ...string) {
	t.Helper()
	content := t.TempDir()
	Write(t, content, map[string]string{"Windows/System32/ntoskrnl.exe": "MZ"})
	for i, edition := range editions {
		if i == 0 {
			Run(t, "wimcapture", append([]string{content, file, edition.Name}, args...)...)
		} else {
			Run(t, "wimappend", content, file, edition.Name)
		}
		set := []string{file, strconv.Itoa(i + 1)}
		for name, value := range edition.Properties {
			set = append(set, "--image-property", fmt.Sprintf("%s=%s", name, value))
		}
		Run(t, "wiminfo", set...)
	}
}

// WindowsFolder makes a folder with those files of Windows Server 2022's evaluation media that
// matter to swdt, and returns the path of the folder.
func WindowsFolder(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	Write(t, folder, map[string]string{
		"sources/boot.wim": "boot", "efi/boot/bootx64.efi": "loader", "bootmgr": "x", "setup.exe": "MZ",
		"boot/etfsboot.com": "bios", "efi/microsoft/boot/efisys.bin": "uefi", "autorun.inf": "[autorun]",
	})
	WIM(t, filepath.Join(folder, "sources", "install.wim"), Server2022())
	return folder
}

// WindowsLabel is the label of the images that WindowsISO makes.
const WindowsLabel = "SSS_X64FREE_EN-US_DV9"

// WindowsISO makes an image of WindowsFolder that firmware could start, and returns the path of the
// image.
func WindowsISO(t testing.TB) string {
	t.Helper()
	return UDF(t, WindowsFolder(t), WindowsLabel, BootArguments()...)
}

// BootArguments returns the arguments of genisoimage for the boot catalog of Windows media.
func BootArguments() []string {
	return []string{
		"-b", "boot/etfsboot.com", "-no-emul-boot",
		"-eltorito-alt-boot", "-e", "efi/microsoft/boot/efisys.bin", "-no-emul-boot",
	}
}

// VirtioISO makes an image like virtio-win with drivers for some versions of Windows, and returns
// the path of the image.
func VirtioISO(t testing.TB, versions ...string) string {
	t.Helper()
	files := map[string]string{
		"virtio-win_license.txt": "license", "guest-agent/qemu-ga-x86_64.msi": "msi",
		"amd64/2k22/viostor.inf": "of floppies",
	}
	stems := map[string]string{"viostor": "viostor", "NetKVM": "netkvm", "vioserial": "vioser", "Balloon": "balloon"}
	for _, version := range versions {
		for driver, stem := range stems {
			for _, extension := range []string{".inf", ".sys", ".cat"} {
				files[fmt.Sprintf("%s/%s/amd64/%s%s", driver, version, stem, extension)] = driver + version + extension
				files[fmt.Sprintf("%s/%s/x86/%s%s", driver, version, stem, extension)] = "x86"
			}
		}
	}
	folder := t.TempDir()
	Write(t, folder, files)
	return Joliet(t, folder, "virtio-win-0.1.285")
}
