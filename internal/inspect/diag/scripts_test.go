package diag

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/goldentest"
)

func TestScriptsOfCommands(t *testing.T) {
	var all strings.Builder
	for _, c := range Commands() {
		if c.Script != "" {
			all.WriteString("# " + c.Name + "\n" + c.Script + "\n")
		}
	}
	goldentest.Check(t, "commands.ps1", all.String())
}
