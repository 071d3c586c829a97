package wine

import (
	"fmt"
	"os/exec"
	"strings"
)

// MissingError names the programs that must be installed first.
type MissingError struct{ Programs []string }

// InstallCommand installs the programs of a MissingError on Debian and Ubuntu.
const InstallCommand = "apt-get install wine wine64 gcc-mingw-w64-x86-64"

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s not found on PATH; install with: %s", strings.Join(e.Programs, ", "), InstallCommand)
}

// tools are the full paths of the programs that create and run a prefix.
type tools struct {
	wine, server, compiler, strip string
	layout                        []string // see fixedLayout
}

func findTools() (tools, error) {
	var found tools
	var missing []string
	for _, tool := range []struct {
		name string
		path *string
	}{
		{"wine", &found.wine},
		{"wineserver", &found.server},
		{"x86_64-w64-mingw32-gcc", &found.compiler},
		{"x86_64-w64-mingw32-strip", &found.strip},
	} {
		path, err := exec.LookPath(tool.name)
		if err != nil {
			missing = append(missing, tool.name)
			continue
		}
		*tool.path = path
	}
	if len(missing) > 0 {
		return tools{}, &MissingError{Programs: missing}
	}
	found.layout = fixedLayout()
	return found, nil
}

// Check returns a *MissingError if Wine or mingw is missing.
func Check() error {
	_, err := findTools()
	return err
}
