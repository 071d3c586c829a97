//go:build e2e && linux

package e2e

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// atStart matches the keys that Wine writes each time it starts, and one claim restarts it: the numbers of the
// last service and of the boot, the display, and which input devices are connected.
var atStart = regexp.MustCompile(`^HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\(ServiceCurrent$|` +
	`Session Manager\\Memory Management\\PrefetchParameters$|Video\\\{|DeviceClasses\\.*\\#\\Control$)`)

// emptyAtStart is a key that Wine makes when it starts. Its values are compared.
const emptyAtStart = `HKEY_LOCAL_MACHINE\SOFTWARE\Wow6432Node\Microsoft\Windows\CurrentVersion\Run`

// registryOf exports the registry on the node.
func registryOf(t *testing.T, prefix, file string) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, hive := range []string{`HKLM\SOFTWARE`, `HKLM\SYSTEM`, `HKCU`} {
		ok(t, "exec", "-c", file, "--", "reg", "export", hive, `C:\state-of-test.reg`, "/y")
		export := filepath.Join(prefix, "drive_c", "state-of-test.reg")
		text, err := os.ReadFile(export)
		if err := errors.Join(err, os.Remove(export)); err != nil {
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
