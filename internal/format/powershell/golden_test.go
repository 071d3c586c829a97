package powershell_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/testing/goldentest"
)

// TestWholeScripts keeps what PowerShell gets of a script, so that a check of all .ps1 files reads it.
func TestWholeScripts(t *testing.T) {
	const script = "Get-Item 'it''s' |\n  Select-Object Name # ‘quoted’\nexit 3"
	inline, ok := powershell.Args(script)
	if !ok {
		t.Fatal("the script is too long")
	}
	for name, args := range map[string][]string{
		"inline.ps1": inline, "file.ps1": powershell.FileArgs(`C:\ProgramData\swdt\it's ‘a’ script.ps1`),
		"short.ps1": powershell.ShortArgs(script),
	} {
		text, err := powershell.Decode(args[len(args)-1])
		if err != nil {
			t.Fatal(err)
		}
		goldentest.Check(t, name, text)
	}
}
