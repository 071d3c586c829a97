package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/tools/release/archive"
	"github.com/swdt-dev/swdt/tools/release/checksum"
	"github.com/swdt-dev/swdt/tools/release/payload"
)

const (
	linuxArchive   = "swdt_1.4.0_linux_amd64.tar.gz"
	windowsArchive = "swdt_1.4.0_windows_amd64.zip"
	moduleList     = "swdt_1.4.0.spdx.json"
)

// TestEveryPlantedDefectIsFound plants one defect at a time in a copy of a release. Whatever depends on the defect is
// adapted to it, so that nothing else can be found.
func TestEveryPlantedDefectIsFound(t *testing.T) {
	dist, _ := released(t, checkout(t))
	if err := run([]string{"inspect", dist}, io.Discard); err != nil {
		t.Fatalf("without a defect: %v", err)
	}
	for name, plant := range defects() {
		t.Run(name, func(t *testing.T) {
			d := defect{t, filepath.Join(t.TempDir(), "dist")}
			if err := os.CopyFS(d.dist, os.DirFS(dist)); err != nil {
				t.Fatal(err)
			}
			plant(d)
			if err := run([]string{"inspect", d.dist}, io.Discard); err == nil {
				t.Error("inspect finds nothing")
			}
		})
	}
}

func defects() map[string]func(d defect) {
	return map[string]func(d defect){
		"a module is missing in the list":        func(d defect) { d.list("relationships", "relatedSpdxElement", "minisign") },
		"a module of the list has no package":    func(d defect) { d.list("packages", "name", "minisign") },
		"the programs are missing in the list":   func(d defect) { d.list("packages", "primaryPackagePurpose", "APPLICATION") },
		"a program of the list has another hash": defect.changesListedHash,
		"a listed module is not in the program":  defect.listsOneMore,
		"a licence in the list has no text":      func(d defect) { d.notices(withoutModule) },
		"a module in the notices has no text":    func(d defect) { d.notices(withoutText) },
		"a text in the notices is empty":         func(d defect) { d.notices(withEmptyText) },
		"an archive has one more file":           func(d defect) { d.archive("notes.txt", "a note") },
		"an archive has one more manual page":    func(d defect) { d.archive("man/swdt-more.1", ".TH") },
		"an archive lacks a manual page":         func(d defect) { d.archive("man/swdt-ps.1", "") },
		"an archive lacks a completion":          func(d defect) { d.archive("completions/_swdt", "") },
		"an archive lacks the licence":           func(d defect) { d.archive("LICENSE", "") },
		"an archive has another licence":         func(d defect) { d.archive("LICENSE", "another licence") },
		"an archive lacks the notices":           func(d defect) { d.archive("THIRD_PARTY_NOTICES", "") },
		"an archive lacks the program":           func(d defect) { d.archive("swdt", "") },
		"an archive has a script as its program": func(d defect) { d.archive("swdt", "#!/bin/sh\n") },
		"an archive is missing":                  func(d defect) { d.remove(linuxArchive) },
		"an archive is damaged":                  func(d defect) { d.write(windowsArchive, []byte("no archive")) },
		"the list is missing":                    func(d defect) { d.remove(moduleList) },
		"the list is no JSON":                    func(d defect) { d.write(moduleList, []byte("{")) },

		"the formula has another hash":            func(d defect) { d.changesHash("swdt-homebrew.rb") },
		"Scoop's manifest has another hash":       func(d defect) { d.changesHash("swdt-scoop.json") },
		"winget's manifest has another hash":      func(d defect) { d.changesHash("swdt-dev.swdt.installer.yaml") },
		"krew's manifest has another hash":        func(d defect) { d.changesHash("swdt-krew.yaml") },
		"the formula leads elsewhere":             func(d defect) { d.replace("swdt-homebrew.rb", "linux_arm64", "linux_riscv") },
		"Scoop's manifest leads elsewhere":        func(d defect) { d.replace("swdt-scoop.json", "v1.4.0/", "v1.4.1/") },
		"krew's manifest leads to a missing file": func(d defect) { d.replace("swdt-krew.yaml", ".zip", ".exe") },
		"a block of the formula is open":          func(d defect) { d.replace("swdt-homebrew.rb", "\n  end\n", "\n") },
		"the formula has another version":         func(d defect) { d.replace("swdt-homebrew.rb", `version "1.4.0"`, `version "1.4.1"`) },
		"krew's manifest is no YAML":              func(d defect) { d.write("swdt-krew.yaml", []byte("a: [")) },
		"winget's manifest has another version":   func(d defect) { d.replace("swdt-dev.swdt.yaml", "1.4.0", "1.4.1") },
		"winget's manifest is of another package": func(d defect) { d.replace("swdt-dev.swdt.yaml", "swdt-dev.swdt", "swdt") },
		"a manifest is missing":                   func(d defect) { d.remove("swdt-dev.swdt.locale.en-US.yaml") },
	}
}

// defect is one that is planted in a copy of a release.
type defect struct {
	t    *testing.T
	dist string
}

func (d defect) write(name string, content []byte) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dist, filepath.FromSlash(name)), content, 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d defect) remove(name string) {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.dist, filepath.FromSlash(name))); err != nil {
		d.t.Fatal(err)
	}
}

// edit fails the test if the edit changes nothing.
func (d defect) edit(name string, edit func(string) string) {
	d.t.Helper()
	before := string(read(d.t, d.dist, name))
	after := edit(before)
	if before == after {
		d.t.Fatalf("the defect is not planted in %s:\n%s", name, before)
	}
	d.write(name, []byte(after))
}

func (d defect) replace(name, old, replacement string) {
	d.t.Helper()
	d.edit(name, func(text string) string { return strings.Replace(text, old, replacement, 1) })
}

var hash = regexp.MustCompile(`[0-9a-fA-F]{64}`)

// changesHash changes the first hash in a file.
func (d defect) changesHash(name string) {
	d.t.Helper()
	d.replace(name, hash.FindString(string(read(d.t, d.dist, name))), strings.Repeat("0", 64))
}

// changesListedHash changes the hash of a program that is in an archive.
func (d defect) changesListedHash() {
	d.t.Helper()
	sum := sumOf(d.t, untar(d.t, read(d.t, d.dist, linuxArchive))["/swdt"].Text)
	d.edit(moduleList, func(text string) string { return strings.ReplaceAll(text, sum, strings.Repeat("0", 64)) })
}

func sumOf(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "content")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	sum, err := checksum.Of(path)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// listed edits the list of modules.
func (d defect) listed(edit func(document map[string][]map[string]any)) {
	d.t.Helper()
	d.edit(moduleList, func(text string) string {
		var all map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			d.t.Fatal(err)
		}
		document := map[string][]map[string]any{}
		for _, part := range []string{"packages", "relationships"} {
			var entries []map[string]any
			if err := json.Unmarshal(all[part], &entries); err != nil {
				d.t.Fatal(err)
			}
			document[part] = entries
		}
		edit(document)
		edited, err := json.Marshal(document)
		if err != nil {
			d.t.Fatal(err)
		}
		return string(edited)
	})
}

// list removes the entries of a part of the list of which a field has a text.
func (d defect) list(part, field, text string) {
	d.t.Helper()
	d.listed(func(document map[string][]map[string]any) {
		before := len(document[part])
		document[part] = slices.DeleteFunc(document[part], func(entry map[string]any) bool {
			value, _ := entry[field].(string)
			return strings.Contains(value, text)
		})
		if len(document[part]) == before {
			d.t.Fatalf("no entry of %s has %s with %q", part, field, text)
		}
	})
}

func (d defect) listsOneMore() {
	d.t.Helper()
	d.listed(func(document map[string][]map[string]any) {
		more := map[string]any{"SPDXID": "SPDXRef-Module-more", "name": "example.com/more", "licenseDeclared": "MIT",
			"externalRefs": []any{map[string]any{"referenceLocator": "pkg:golang/example.com/more@v1.0.0"}}}
		document["packages"] = append(document["packages"], more)
		document["relationships"] = append(document["relationships"], map[string]any{"relationshipType": "DEPENDS_ON",
			"spdxElementId": "SPDXRef-Program-swdt-linux-amd64", "relatedSpdxElement": more["SPDXID"]})
	})
}

// archive gives one archive another content of a file ("": it lacks the file), and its new hash to the
// manifests.
func (d defect) archive(name, content string) {
	d.t.Helper()
	before := read(d.t, d.dist, linuxArchive)
	var files []payload.File
	for path, file := range untar(d.t, before) {
		files = append(files, payload.File{Name: strings.TrimPrefix(path, "/"), Mode: file.Mode, Content: []byte(file.Text)})
	}
	known := len(files)
	files = slices.DeleteFunc(files, func(f payload.File) bool { return f.Name == name })
	if content == "" && len(files) == known {
		d.t.Fatalf("%s has no %s", linuxArchive, name)
	}
	if content != "" {
		files = append(files, payload.File{Name: name, Mode: payload.ModeText, Content: []byte(content)})
	}
	slices.SortFunc(files, func(a, b payload.File) int { return strings.Compare(a.Name, b.Name) })
	var packed bytes.Buffer
	if err := archive.TarGz(&packed, files, time.Unix(1_800_000_000, 0)); err != nil {
		d.t.Fatal(err)
	}
	d.write(linuxArchive, packed.Bytes())
	d.rehash(sumOf(d.t, string(before)), sumOf(d.t, packed.String()))
}

// rehash replaces a hash in all manifests.
func (d defect) rehash(old, replacement string) {
	d.t.Helper()
	for _, name := range []string{"swdt-homebrew.rb", "swdt-krew.yaml", "swdt-scoop.json", "swdt-dev.swdt.installer.yaml"} {
		adapted := strings.ReplaceAll(string(read(d.t, d.dist, name)), old, replacement)
		adapted = strings.ReplaceAll(adapted, strings.ToUpper(old), strings.ToUpper(replacement))
		d.write(name, []byte(adapted))
	}
}

// notices makes the release from edited notices, with the list of modules as it was.
func (d defect) notices(edit func(string) string) {
	d.t.Helper()
	list := read(d.t, d.dist, moduleList)
	folder := checkout(d.t)
	source := defect{d.t, folder}
	source.edit("THIRD_PARTY_NOTICES", edit)
	dist, _ := released(d.t, folder)
	if err := os.RemoveAll(d.dist); err != nil {
		d.t.Fatal(err)
	}
	if err := os.CopyFS(d.dist, os.DirFS(dist)); err != nil {
		d.t.Fatal(err)
	}
	d.write(moduleList, list)
}

var (
	listedMinisign = regexp.MustCompile(`(?m)^aead.dev/minisign .*: BSD-3-Clause\n`)
	textOfMinisign = regexp.MustCompile(`\n=+\naead.dev/minisign .*: LICENSE\n-+\n\n(text of .*\n)`)
)

func withoutModule(notices string) string {
	return listedMinisign.ReplaceAllString(withoutText(notices), "")
}

func withoutText(notices string) string { return textOfMinisign.ReplaceAllString(notices, "") }

func withEmptyText(notices string) string {
	text := textOfMinisign.FindStringSubmatch(notices)
	if text == nil {
		return notices
	}
	return strings.Replace(notices, text[1], "\n", 1)
}
