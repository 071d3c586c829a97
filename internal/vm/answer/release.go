package answer

import (
	"fmt"
	"slices"
	"strings"
)

// Release is a release of Windows, written as node files write it.
type Release string

const (
	Server2019 Release = "2019"
	Server2022 Release = "2022"
	Server2025 Release = "2025"
	Windows11  Release = "windows-11"
)

// Releases lists the releases that this package writes answers for.
func Releases() []Release { return []Release{Server2019, Server2022, Server2025, Windows11} }

// client reports whether the release is a Windows for desktops. Such a release has no Server
// Manager, and asks for a user at its first start.
func (r Release) client() bool { return r == Windows11 }

func (r Release) check() error {
	if slices.Contains(Releases(), r) {
		return nil
	}
	var known []string
	for _, release := range Releases() {
		known = append(known, string(release))
	}
	return fmt.Errorf("release %q is not known; write one of %s", string(r), strings.Join(known, ", "))
}

// Administrator returns the name that the built-in Administrator has in a language.
func Administrator(language string) string {
	short, _, _ := strings.Cut(language, "-")
	switch short {
	case "es", "pt":
		return "Administrador"
	case "fr":
		return "Administrateur"
	case "fi":
		return "Järjestelmänvalvoja"
	case "hu":
		return "Rendszergazda"
	case "ru":
		return "Администратор"
	case "sv":
		return "Administratör"
	}
	return "Administrator"
}
