// Package containerdconfig makes the configuration of a containerd. It merges the values that the
// node file sets into the configuration that this containerd generates (`containerd.exe config
// default`).
//
// The key of a value depends on containerd's version: 2.0 split the CRI plugin, 2.1 replaced the
// folder of CNI plugins by a list of folders, and 2.3 turned the servers into plugins. swdt does
// not use a table of versions. It sets a value at the first of the possible keys that exists in
// the generated configuration.
package containerdconfig

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// Wishes are the values to set. An empty field leaves containerd's own value.
type Wishes struct {
	PauseImage string
	CNIBinDir  string
	CNIConfDir string
	LogLevel   string
	Root       string
	State      string
	// Pipe is the address of containerd's API, \\.\pipe\containerd-containerd.
	Pipe string
	// User is the TOML in the node file's field spec.kubernetes.containerd.config. It is merged
	// last, and overrides everything else.
	User []byte
}

// Info describes the result of a merge.
type Info struct {
	// ConfigVersion is the version of the configuration's format: 2, 3 or 4.
	ConfigVersion int
	// Warnings are about user TOML that this containerd most likely ignores.
	Warnings []string
}

const header = `# Written by swdt join, from what "containerd.exe config default" prints and
# spec.kubernetes.containerd of the node file. Changes belong into containerd.config
# there: those made here are overwritten.

`

// userField is the node file's field that contains the user's TOML. Errors and warnings use this
// name.
const userField = "spec.kubernetes.containerd.config"

// Merge returns the configuration: complete, deterministic TOML without the
// comments that defaults and user TOML may have.
func Merge(defaults []byte, w Wishes) ([]byte, Info, error) {
	config, version, err := parseDefaults(defaults)
	if err != nil {
		return nil, Info{}, err
	}
	user, err := parseUser(w.User)
	if err != nil {
		return nil, Info{}, err
	}
	info := Info{ConfigVersion: version, Warnings: warnings(config, user, version)}
	delete(user, "version") // the merged configuration keeps the version of the defaults
	for _, wish := range places(w) {
		if err := wish.set(config); err != nil {
			return nil, Info{}, err
		}
	}
	var conflict *conflictError
	if err := mergeTable(config, user, nil); errors.As(err, &conflict) {
		return nil, Info{}, conflict.inUserTOML()
	}
	if refused := Refused(config); refused != "" {
		return nil, Info{}, fmt.Errorf("%s: with it, %s", userField, refused)
	}
	var out bytes.Buffer
	out.WriteString(header)
	if err := toml.NewEncoder(&out).SetIndentTables(true).Encode(config); err != nil {
		return nil, Info{}, fmt.Errorf("write containerd's configuration: %w", err)
	}
	return out.Bytes(), info, nil
}

// Equal reports whether two configurations have the same values; it returns
// false if either is not TOML.
func Equal(a, b []byte) bool {
	var left, right map[string]any
	if read(a, &left) != nil || read(b, &right) != nil {
		return false
	}
	return reflect.DeepEqual(left, right)
}

// read parses a configuration as containerd does from a file. It skips a byte order mark, which only containerd 1
// does: see Refuse. If the encoding of the file is the reason that it cannot be parsed, the error is a
// *windowstext.Error.
func read(text []byte, config *map[string]any) error {
	err := toml.Unmarshal(bytes.TrimPrefix(text, []byte(windowstext.MarkedUTF8.Mark())), config)
	return windowstext.Explain(text, "containerd", err, windowstext.MarkedUTF8)
}

// Version returns the version of a configuration's format, or 0 if the configuration has none.
func Version(config []byte) (int, error) {
	var all map[string]any
	err := read(config, &all)
	version, _ := all["version"].(int64)
	return int(version), err
}

// MajorOf returns the major version of the containerd that generates a configuration: 1, or 2 for later ones.
func MajorOf(generated []byte) int {
	if version, err := Version(generated); err == nil && version <= oldestVersion {
		return 1
	}
	return 2
}

// Refuse returns a *windowstext.Error if a containerd of this major version refuses a configuration because of its
// encoding. The parser of containerd 1, go-toml v1, skips a byte order mark; that of containerd 2, go-toml v2, does
// not: containerd/containerd#7016, #11940.
func Refuse(config []byte, major int) error {
	err := read(config, new(map[string]any))
	if _, encoded := errors.AsType[*windowstext.Error](err); encoded {
		return err
	}
	return windowstext.Refuse(config, fmt.Sprintf("containerd %d", major), accepted(major)...)
}

// Explain returns the reason why a containerd of this major version refuses a configuration with err: a
// *windowstext.Error if it is the encoding, otherwise err.
func Explain(config []byte, major int, err error) error {
	return windowstext.Explain(config, fmt.Sprintf("containerd %d", major), err, accepted(major)...)
}

// accepted returns the encodings that a containerd reads besides UTF-8.
func accepted(major int) []windowstext.Encoding {
	if major < 2 {
		return []windowstext.Encoding{windowstext.MarkedUTF8}
	}
	return nil
}

const (
	oldestVersion = 2
	newestVersion = 4
)

func parseDefaults(text []byte) (map[string]any, int, error) {
	var config map[string]any
	if err := toml.Unmarshal(text, &config); err != nil {
		return nil, 0, fmt.Errorf("parse the output of containerd.exe config default: %w", err)
	}
	version, ok := config["version"].(int64)
	switch {
	case !ok:
		return nil, 0, errors.New("the output of containerd.exe config default has no config version: use containerd " +
			"1.5 or newer")
	case version < oldestVersion || version > newestVersion:
		return nil, 0, fmt.Errorf("containerd's configuration has version %d, but swdt supports %d to %d: use another "+
			"containerd, or a newer swdt", version, oldestVersion, newestVersion)
	}
	return config, int(version), nil
}

// UserError reports TOML in the node file that cannot be parsed.
type UserError struct{ Mistake }

func (e *UserError) Error() string {
	return fmt.Sprintf("%s, line %d, column %d: %s: %s", userField, e.Line, e.Column, e.What, e.Remedy)
}

func parseUser(text []byte) (map[string]any, error) {
	user := map[string]any{}
	if err := toml.Unmarshal(text, &user); err != nil {
		return nil, &UserError{syntax(text, err)}
	}
	return user, nil
}

// mergeTable merges its second table into its first. If a key has a table in both, it merges these
// tables too. It replaces any other value. If a key has a table on one side and a value on the
// other, mergeTable returns a conflictError.
func mergeTable(into, from map[string]any, path []string) error {
	for key, value := range from {
		here := append(path[:len(path):len(path)], key)
		table, isTable := value.(map[string]any)
		was, wasTable := into[key].(map[string]any)
		switch {
		case isTable && wasTable:
			if err := mergeTable(was, table, here); err != nil {
				return err
			}
		case wasTable, isTable && into[key] != nil:
			return &conflictError{path: here, wasTable: wasTable}
		default:
			into[key] = value
		}
	}
	return nil
}

// conflictError reports a key that has a table on one side of a merge and a value on the other.
type conflictError struct {
	path     []string
	wasTable bool
}

func (e *conflictError) Error() string {
	if e.wasTable {
		return fmt.Sprintf("containerd's configuration has a table %s, where a value is expected: correct it",
			dotted(e.path))
	}
	return fmt.Sprintf("containerd's configuration has a value %s, where a table is expected: correct it",
		dotted(e.path))
}

// inUserTOML describes the conflict to the author of the node file.
func (e *conflictError) inUserTOML() error {
	if e.wasTable {
		return fmt.Errorf("%s sets %s to a value, where containerd has a table: write [%[2]s] and the value's name "+
			"below it", userField, dotted(e.path))
	}
	return fmt.Errorf("%s makes a table of %s, where containerd has a value: write %s = … in the table above",
		userField, dotted(e.path), e.path[len(e.path)-1])
}

// dotted returns a path in TOML's notation.
func dotted(path []string) string {
	quoted := make([]string, len(path))
	for i, key := range path {
		quoted[i] = key
		if strings.ContainsAny(key, `. "'`) {
			quoted[i] = "'" + key + "'"
		}
	}
	return strings.Join(quoted, ".")
}
