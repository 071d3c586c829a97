package probebin

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
)

func TestEmbedded(t *testing.T) {
	program := []byte("\x7fELF program")
	packed, err := agentbin.Pack(program)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"swdt-probe-linux-amd64.zst": {Data: packed}, "swdt-probe-linux-arm64.zst": {Data: []byte("x")}}
	if got, err := fromFS(files, "linux", "amd64"); err != nil || !bytes.Equal(got, program) {
		t.Errorf("%q, %v", got, err)
	}
	var missing *MissingError
	for _, processor := range []string{"riscv64", "", "../x", "\x00"} {
		if _, err := fromFS(files, "linux", processor); !errors.As(err, &missing) {
			t.Errorf("%q: the error is %v", processor, err)
		}
	}
	if _, err := fromFS(files, "linux", "arm64"); err == nil || !strings.Contains(err.Error(), "`make build`") {
		t.Errorf("a damaged probe: %v", err)
	}
}
