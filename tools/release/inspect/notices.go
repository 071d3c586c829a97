package inspect

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
)

// The lines of THIRD_PARTY_NOTICES before and after the names of the modules that have a text.
var (
	textBegins = strings.Repeat("=", 80)
	namesEnd   = strings.Repeat("-", 80)
)

// listedModule is a line of the list of modules, which an introduction precedes.
var listedModule = regexp.MustCompile(`(?m)^(Go standard library|\S+ v\S+): \S`)

const standardLibrary = "Go standard library"

// licences compares the notices in each archive with themselves: they must have a text for each module that
// they list. All archives have the same licence and the same notices.
func (r *release) licences(archives []unpacked) error {
	var problems []error
	for _, a := range archives {
		for _, name := range []string{"LICENSE", "THIRD_PARTY_NOTICES"} {
			if !bytes.Equal(a.files[name], archives[0].files[name]) {
				problems = append(problems, fmt.Errorf("%s has another %s than %s", a.name, name, archives[0].name))
			}
		}
		listed, withText := readNotices(string(a.files["THIRD_PARTY_NOTICES"]))
		for _, m := range listed {
			if !withText[m] {
				problems = append(problems, fmt.Errorf("THIRD_PARTY_NOTICES of %s has no text of a licence of %s", a.name, m))
			}
		}
	}
	return errors.Join(problems...)
}

// readNotices returns the modules that the notices list, and those that have a text which is not empty.
func readNotices(notices string) (listed []string, withText map[string]bool) {
	withText = map[string]bool{}
	list, texts, _ := strings.Cut(notices, textBegins+"\n")
	for _, found := range listedModule.FindAllStringSubmatch(list, -1) {
		listed = append(listed, found[1])
	}
	for part := range strings.SplitSeq(texts, textBegins+"\n") {
		names, text, _ := strings.Cut(part, namesEnd+"\n")
		if strings.TrimSpace(text) == "" {
			continue
		}
		for line := range strings.Lines(names) {
			name, _, _ := strings.Cut(line, ": ")
			withText[name] = true
		}
	}
	return listed, withText
}

// module is a module that Go has recorded in a program.
type module struct{ path, version string }

func (m module) String() string {
	if m.path == standardLibrary {
		return m.path
	}
	return m.path + " " + m.version
}

func (m module) purl() string {
	if m.path == standardLibrary {
		return "pkg:golang/stdlib@" + m.version
	}
	return "pkg:golang/" + m.path + "@" + m.version
}

// modulesOf returns the modules of an archive's program, and Go's library.
func modulesOf(a unpacked) ([]module, error) {
	info, err := buildinfo.Read(bytes.NewReader(a.files[a.target.Program()]))
	if err != nil {
		return nil, fmt.Errorf("read the modules of the program in %s: %w", a.name, err)
	}
	all := []module{{standardLibrary, strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		all = append(all, replaced(m))
	}
	return all, nil
}

func replaced(m *debug.Module) module {
	if m.Replace != nil {
		m = m.Replace
	}
	return module{m.Path, m.Version}
}
