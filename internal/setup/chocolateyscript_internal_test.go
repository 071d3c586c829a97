package setup

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/golden"
)

func TestScriptOfTheInstaller(t *testing.T) {
	golden.Check(t, "chocolatey.ps1", installerScript("https://example.org/it's ‘a’ script.ps1?a=$(b)"))
}
