package vm_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile/earlier"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
)

// steps are the steps that were reported.
type steps struct {
	ui.Discard
	all []string
}

func (s *steps) Step(format string, args ...any) { s.all = append(s.all, fmt.Sprintf(format, args...)) }

// A start whose guest answered gives the next one its estimate, also of another VM of the image. A
// command that finds a running guest does not measure a start.
func TestAnEarlierStartGivesTheEstimate(t *testing.T) {
	root, times := t.TempDir(), filepath.Join(t.TempDir(), "times.json")
	open := func() *vm.Machines { return machines(t, root, &simulatedvm.Driver{}).WithTimes(earlier.At(times)) }
	s, ctx := open(), t.Context()
	await := func(s *vm.Machines, name string) string {
		t.Helper()
		var reported steps
		_, err := s.Await(ctx, name, &reported)
		check(t, err)
		return strings.Join(reported.all, "\n")
	}
	start := func(name string) {
		t.Helper()
		_, err := s.Create(ctx, document(t, name), ui.Discard{})
		check(t, err)
		report, err := s.Start(ctx, name, ui.Discard{})
		check(t, err)
		serve(t, report.Address, func(_ int, conn net.Conn) {
			_, _ = conn.Write([]byte("SSH-2.0-test\r\n"))
			_ = conn.Close()
		})
	}
	start("win-1")
	if got := await(open(), "win-1"); strings.Contains(got, "before") {
		t.Errorf("an estimate without an earlier start: %s", got)
	}
	if _, err := os.Stat(times); err == nil {
		t.Error("a command that did not start the VM remembers its start")
	}
	await(s, "win-1")
	remembered := map[string]map[string]any{}
	text, err := os.ReadFile(times)
	check(t, err)
	check(t, json.Unmarshal(text, &remembered))
	if len(remembered) != 1 {
		t.Fatalf("%s", text)
	}
	for kind := range remembered {
		s.Times().Remember(kind, time.Hour+10*time.Second)
	}
	start("win-2")
	want := "waiting for the SSH server of VM win-2 (took about 60 min before)"
	if got := await(s, "win-2"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
