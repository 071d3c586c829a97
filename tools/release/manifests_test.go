package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestEveryDefectOfAManifestIsFound plants defects in what package managers read.
func TestEveryDefectOfAManifestIsFound(t *testing.T) {
	findsEach(t, map[string]func(d defect){
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
	})
}

var hash = regexp.MustCompile(`[0-9a-fA-F]{64}`)

// changesHash changes the first hash in a file.
func (d defect) changesHash(name string) {
	d.t.Helper()
	d.replace(name, hash.FindString(string(read(d.t, d.dist, name))), strings.Repeat("0", 64))
}
