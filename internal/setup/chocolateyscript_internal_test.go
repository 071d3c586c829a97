package setup

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/goldentest"
)

func TestScriptOfTheInstaller(t *testing.T) {
	goldentest.Check(t, "chocolatey.ps1", installerScript("https://example.org/it's ‘a’ script.ps1?a=$(b)"))
}
