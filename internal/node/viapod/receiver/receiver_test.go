package receiver_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/node/viapod/receiver"
	"github.com/swdt-dev/swdt/internal/testing/goldentest"
)

func TestScript(t *testing.T) {
	goldentest.Check(t, "receive.ps1", receiver.Script(`C:\hpc\swdt-agent-1.exe`, 9<<20))
}
