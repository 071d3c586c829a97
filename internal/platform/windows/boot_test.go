package windows

import (
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
)

func TestTheMachinesServiceControlManager(t *testing.T) {
	boot := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	process := func(pid uint32, name string, session uint32, after time.Duration) platform.Process {
		return platform.Process{PID: pid, Name: name, Session: session, Started: boot.Add(after)}
	}
	machines := process(700, "services.exe", 0, time.Second)
	container := process(644, "services.exe", 3, time.Hour)
	older := process(640, "Services.exe", 4, 0) // by a clock that was set back
	for name, c := range map[string]struct {
		list []platform.Process
		want uint32
	}{
		"alone":                        {[]platform.Process{process(4, "System", 0, 0), machines}, 700},
		"a container's comes first":    {[]platform.Process{container, machines}, 700},
		"a container's comes last":     {[]platform.Process{machines, container}, 700},
		"a container's looks older":    {[]platform.Process{older, machines, container}, 700},
		"one more in session 0":        {[]platform.Process{process(600, "services.exe", 0, time.Minute), machines}, 700},
		"Wine may have another number": {[]platform.Process{process(56, "services.exe", 1, 0)}, 56},
	} {
		if got, found := managerOf(c.list); !found || got.PID != c.want {
			t.Errorf("%s: process %d, %v; want %d", name, got.PID, found, c.want)
		}
	}
	if got, found := managerOf([]platform.Process{process(4, "System", 0, 0)}); found {
		t.Errorf("no manager: %+v", got)
	}
}
