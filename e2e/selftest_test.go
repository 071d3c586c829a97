//go:build e2e

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/proof/selftest"
)

var updateStandIn = flag.Bool("update-stand-in", false, "record the answers of the Wine node for swdt selftest anew")

// TestSelftestOnAWineNode tries all claims on a Wine node behind Debian's OpenSSH. The claims that this
// node cannot prove are named, all others pass, and the node is afterwards as before.
func TestSelftestOnAWineNode(t *testing.T) {
	info := wineSandbox(t)
	file := nodeFile(t, opensshFor(t, info).credentials(), "")
	ok(t, "exec", "-c", file, "--", "hostname") // brings the agent, which stays
	before := stateOfNode(t, info.Prefix, file)
	out := filepath.Join(t.TempDir(), "report.json")
	const limit = 8 * time.Minute
	r := swdtWithin(t, limit, "selftest", "-c", file, "--change-settings", "--allow-reboot", "--out", out)
	if r.code != 0 {
		t.Errorf("exit code %d", r.code)
	}
	report, err := selftest.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	after := stateOfNode(t, info.Prefix, file)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the run changed the node (-before +after):\n%s", diff)
	}
	expectClaims(t, report)
	if !strings.HasPrefix(report.System.OpenSSH, "OpenSSH_") || report.System.Kind != "wine" || report.CleanUp != "" {
		t.Errorf("the report describes %+v, and its clean-up is %q", report.System, report.CleanUp)
	}
	if *updateStandIn {
		recordStandIn(t, report)
		return
	}
	for _, d := range report.Differences { // some depend on how far a push has come when the node restarts
		if d.StandIn == "wine" {
			t.Logf("another answer than recorded: %+v; -update-stand-in writes them anew", d)
		}
	}
}

// expectClaims fails the test unless all claims passed, but those about things that the Wine node lacks.
func expectClaims(t *testing.T, report selftest.Report) {
	t.Helper()
	lacks := []string{"events", "counters", "runtime", "service-event"}
	var impossible []string
	for _, c := range report.Claims {
		switch c.Outcome {
		case selftest.Passed:
		case selftest.Impossible:
			impossible = append(impossible, c.ID)
		default:
			t.Errorf("%s: %s: %s", c.ID, c.Outcome, c.Reason)
		}
	}
	if diff := cmp.Diff(lacks, impossible); diff != "" {
		t.Errorf("claims that are not possible (-want +got):\n%s", diff)
	}
}

func recordStandIn(t *testing.T, r selftest.Report) {
	t.Helper()
	text, err := json.MarshalIndent(r.Record(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("../internal/proof/selftest/standins/wine.json", append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// stateOfNode returns what a run must leave unchanged: the hash of each file of drive C:, and the lines of each key of
// the registry, which has the services, too.
func stateOfNode(t *testing.T, prefix, file string) map[string]string {
	t.Helper()
	state := registryOf(t, prefix, file)
	maps.Copy(state, filesOf(t, prefix))
	return state
}

// ownFiles are the files that any command of swdt writes, the folder of its journals, which any push leaves, and the
// exports of this test.
var ownFiles = []string{"ProgramData/swdt/hashes.json", "ProgramData/swdt/lock", "ProgramData/swdt/journal", "state-of-test.reg"}

// atStart matches the keys that Wine writes each time it starts, and one claim restarts it: the numbers of the
// last service and of the boot, the display, and which input devices are connected.
var atStart = regexp.MustCompile(`^HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\(ServiceCurrent$|` +
	`Session Manager\\Memory Management\\PrefetchParameters$|Video\\\{|DeviceClasses\\.*\\#\\Control$)`)

// emptyAtStart is a key that Wine makes when it starts. Its values are compared.
const emptyAtStart = `HKEY_LOCAL_MACHINE\SOFTWARE\Wow6432Node\Microsoft\Windows\CurrentVersion\Run`

func filesOf(t *testing.T, prefix string) map[string]string {
	t.Helper()
	drive := filepath.Join(prefix, "drive_c")
	state := map[string]string{}
	err := filepath.WalkDir(drive, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(drive, path)
		if err != nil || slices.Contains(ownFiles, name) {
			return err
		}
		state[name], err = content(path, entry)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// content describes a file, a folder or a link.
func content(path string, entry fs.DirEntry) (string, error) {
	switch {
	case entry.IsDir():
		return "folder", nil
	case entry.Type()&fs.ModeSymlink != 0:
		return os.Readlink(path)
	}
	text, err := os.ReadFile(path)
	return fmt.Sprintf("%d bytes, %x", len(text), sha256.Sum256(text)), err
}

// registryOf exports the registry on the node.
func registryOf(t *testing.T, prefix, file string) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, hive := range []string{`HKLM\SOFTWARE`, `HKLM\SYSTEM`, `HKCU`} {
		ok(t, "exec", "-c", file, "--", "reg", "export", hive, `C:\state-of-test.reg`, "/y")
		text, err := os.ReadFile(filepath.Join(prefix, "drive_c", "state-of-test.reg"))
		if err != nil {
			t.Fatal(err)
		}
		keys := registryKeys(text)
		if len(keys) < 10 {
			t.Fatalf("the export of %s has %d keys", hive, len(keys))
		}
		maps.DeleteFunc(keys, func(key, lines string) bool {
			return atStart.MatchString(key) || key == emptyAtStart && lines == ""
		})
		maps.Copy(state, keys)
	}
	return state
}

// keyLine is the first line of a key in an export.
var keyLine = regexp.MustCompile(`(?m)^\[(.+)\]$`)

// registryKeys returns the sorted lines of each key of an export, which is UTF-16.
func registryKeys(export []byte) map[string]string {
	units := make([]uint16, len(export)/2)
	for i := range units {
		units[i] = uint16(export[2*i]) | uint16(export[2*i+1])<<8
	}
	text := bytes.ReplaceAll([]byte(string(utf16.Decode(units))), []byte("\r\n"), []byte("\n"))
	keys := map[string]string{}
	heads := keyLine.FindAllSubmatchIndex(text, -1)
	for i, head := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		lines := strings.Split(strings.TrimSpace(string(text[head[1]:end])), "\n")
		slices.Sort(lines)
		keys[string(text[head[2]:head[3]])] = strings.Join(lines, "\n")
	}
	return keys
}
