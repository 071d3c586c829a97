package firstboot_test

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/testing/goldentest"
	"github.com/swdt-dev/swdt/internal/vm/firstboot"
)

func TestCommandLine(t *testing.T) {
	words := strings.Fields(firstboot.Command())
	text, err := powershell.Decode(words[len(words)-1])
	if err != nil {
		t.Fatal(err)
	}
	goldentest.Check(t, "command/find.ps1", text)
}
