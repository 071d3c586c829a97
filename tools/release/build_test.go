package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/swdt-dev/swdt/tools/release/checksum"
	"github.com/swdt-dev/swdt/tools/release/payload"
	"github.com/swdt-dev/swdt/tools/release/signature"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// checkout makes a folder as a clone is after `make release` has built the programs, except that a small
// program stands for each of them. It is compiled in the folder, so a path in it would show.
func checkout(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "program"), os.DirFS("testdata/program")); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "program", ".")
	build.Dir = filepath.Join(folder, "program")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	program, err := os.ReadFile(filepath.Join(build.Dir, "program"))
	if err != nil {
		t.Fatal(err)
	}
	source := payload.Source{Repository: folder, Bin: filepath.Join(folder, "bin")}
	put := func(path string, content []byte) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, target := range payload.Targets() {
		put(source.Path(target), program)
	}
	put(filepath.Join(source.Bin, "swdt-agent.exe"), program)
	put(filepath.Join(source.Bin, "probes", "swdt-probe-linux-amd64"), program)
	for name, text := range map[string]string{
		"LICENSE": "licence", "THIRD_PARTY_NOTICES": notices(t, program),
		"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n- A change.\n\n## 1.4.0\n\n- All of it.\n\n" +
			"## 1.4.0-rc.1\n\n- Most of it.\n",
		"bin/share/man/swdt.1":            ".TH SWDT 1\n",
		"bin/share/man/swdt-ps.1":         ".TH SWDT-PS 1\n",
		"bin/share/completions/swdt.bash": "bash", "bin/share/completions/_swdt": "zsh",
		"bin/share/completions/swdt.fish": "fish", "bin/share/completions/swdt.ps1": "powershell",
	} {
		put(filepath.Join(folder, name), []byte(text))
	}
	return folder
}

// notices returns the list of a program's modules, and a text for each.
func notices(t *testing.T, program []byte) string {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"Go standard library"}
	for _, m := range info.Deps {
		names = append(names, m.Path+" "+m.Version)
	}
	var list, texts strings.Builder
	for _, name := range names {
		fmt.Fprintf(&list, "%s: BSD-3-Clause\n", name)
		fmt.Fprintf(&texts, "\n%s\n%s: LICENSE\n%s\n\ntext of %s\n", strings.Repeat("=", 80), name,
			strings.Repeat("-", 80), name)
	}
	return "Notices\n\nEach module has a text: do not edit this.\n\n" + list.String() + texts.String()
}

// released makes a release of a checkout.
func released(t *testing.T, folder string, args ...string) (dist, output string) {
	t.Helper()
	var out bytes.Buffer
	dist = filepath.Join(folder, "dist")
	all := append([]string{"build", "-version", "v1.4.0", "-commit", commit, "-time", "1800000000", "-out", dist,
		"-repository", folder, "-bin", filepath.Join(folder, "bin")}, args...)
	if err := run(all, &out); err != nil {
		t.Fatal(err)
	}
	return dist, out.String()
}

func TestReleaseIsComplete(t *testing.T) {
	dist, output := released(t, checkout(t))
	if !strings.Contains(output, "not signed") {
		t.Errorf("a release without a key does not say so:\n%s", output)
	}
	entries, err := checksum.Folder(dist)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	want := []string{
		"RELEASE_NOTES.md",
		"swdt-1.4.0-1.aarch64.rpm", "swdt-1.4.0-1.x86_64.rpm",
		"swdt-dev.swdt.installer.yaml", "swdt-dev.swdt.locale.en-US.yaml", "swdt-dev.swdt.yaml",
		"swdt-homebrew.rb", "swdt-krew.yaml", "swdt-scoop.json",
		"swdt_1.4.0-1_amd64.deb", "swdt_1.4.0-1_arm64.deb", "swdt_1.4.0.intoto.json", "swdt_1.4.0.spdx.json",
		"swdt_1.4.0_darwin_amd64.tar.gz", "swdt_1.4.0_darwin_arm64.tar.gz", "swdt_1.4.0_image.tar",
		"swdt_1.4.0_linux_amd64.tar.gz", "swdt_1.4.0_linux_arm64.tar.gz",
		"swdt_1.4.0_windows_amd64.zip", "swdt_1.4.0_windows_arm64.zip",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
	if err := run([]string{"verify", dist}, io.Discard); err != nil {
		t.Error(err)
	}
}

// TestADownloadFromGitHubIsVerified stores a release as GitHub does: each file under its base name, in which other
// characters than letters, digits, dots, hyphens and underscores become dots. SHA256SUMS has the same names.
func TestADownloadFromGitHubIsVerified(t *testing.T) {
	folder := checkout(t)
	other := regexp.MustCompile(`[^0-9A-Za-z._-]+`)
	for _, version := range []string{"v1.4.0", "v1.4.0-rc.1"} {
		dist, _ := released(t, folder, "-version", version)
		download := t.TempDir()
		err := filepath.WalkDir(dist, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			return os.Link(path, filepath.Join(download, other.ReplaceAllString(entry.Name(), ".")))
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := run([]string{"verify", download}, io.Discard); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	// The version of the package keeps the ~, with which a pre-release sorts before its release.
	members := debMembers(t, read(t, filepath.Join(folder, "dist"), "swdt_1.4.0.rc.1-1_amd64.deb"))
	if control := untar(t, members["control.tar.gz"])["/control"].Text; !strings.Contains(control, "Version: 1.4.0~rc.1-1\n") {
		t.Errorf("the package has another version:\n%s", control)
	}
}

// list returns the list of hashes, which covers every byte of the release.
func list(t *testing.T, dist string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dist, checksum.File))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTwoReleasesAreEqual(t *testing.T) {
	one, _ := released(t, checkout(t))
	t.Setenv("TZ", "Pacific/Auckland")
	two, _ := released(t, checkout(t))
	if a, b := list(t, one), list(t, two); a != b {
		t.Errorf("two releases differ:\n%s\n%s", a, b)
	}
	later, _ := released(t, checkout(t), "-time", "1800000002")
	if list(t, one) == list(t, later) {
		t.Error("a release with another time is equal, so equality proves nothing")
	}
}

func TestReleaseIsRefused(t *testing.T) {
	folder := checkout(t)
	dist, _ := released(t, folder)
	before := list(t, dist)
	for name, args := range map[string][]string{
		"a tag without a section in the changelog": {"-version", "v1.5.0"},
		"no version": {"-version", "devel"}, "a short commit": {"-commit", "0123"}, "no time": {"-time", "0"},
	} {
		all := append([]string{"build", "-version", "v1.4.0", "-commit", commit, "-time", "1800000000", "-out", dist,
			"-repository", folder, "-bin", filepath.Join(folder, "bin")}, args...)
		if err := run(all, io.Discard); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if list(t, dist) != before {
		t.Error("a release that failed has changed the older one")
	}
	leftovers, err := filepath.Glob(filepath.Join(folder, ".release-*"))
	if err != nil || len(leftovers) > 0 {
		t.Errorf("left %v, %v", leftovers, err)
	}
}

// signed makes a release that a new key has signed, and returns the public key.
func signed(t *testing.T) (dist, public string) {
	t.Helper()
	_, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := minisign.EncryptKey("a password", private)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(signature.KeyVariable, string(text))
	t.Setenv(signature.PasswordVariable, "a password")
	dist, output := released(t, checkout(t))
	_, public, found := strings.Cut(output, "signed by the public key ")
	if !found || strings.Contains(output, string(text)) {
		t.Fatalf("got %s", output)
	}
	return dist, strings.TrimSpace(public)
}

func TestEveryTamperingIsFound(t *testing.T) {
	dist, public := signed(t)
	check := func() error { return run([]string{"verify", "-key", public, dist}, io.Discard) }
	if err := check(); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"inspect", dist}, io.Discard); err != nil {
		t.Error(err)
	}
	change := func(name string, edit func([]byte) []byte) (restore func()) {
		path := filepath.Join(dist, name)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, edit(bytes.Clone(before)), 0o644); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := os.WriteFile(path, before, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	flip := func(content []byte) []byte { content[len(content)/2] ^= 1; return content }
	entries, err := checksum.Folder(dist)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{checksum.File, checksum.File + signature.Extension}
	for _, entry := range entries {
		names = append(names, entry.Name)
	}
	for _, name := range names {
		restore := change(name, flip)
		if err := check(); err == nil {
			t.Errorf("a changed bit in %s is not found", name)
		}
		restore()
	}
	// An attacker who can write all files can also write the list anew, but cannot sign it.
	restore := change("swdt_1.4.0_linux_amd64.tar.gz", flip)
	if entries, err = checksum.Folder(dist); err != nil {
		t.Fatal(err)
	}
	restoreList := change(checksum.File, func([]byte) []byte { return checksum.Format(entries) })
	if err := run([]string{"verify", dist}, io.Discard); err != nil {
		t.Errorf("the forged list does not fit its files: %v", err)
	}
	if err := check(); err == nil {
		t.Error("a forged list is accepted")
	}
	restore()
	restoreList()
	other, _, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"verify", "-key", other.String(), dist}, io.Discard); err == nil {
		t.Error("the signature is accepted as that of another key")
	}
}
