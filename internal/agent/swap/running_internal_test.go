package swap

import (
	"testing"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
)

// An ordinary account's process whose parent had the PID that the service has now is not the service's. The program of
// a process below a wrapper is not run for its version, unless the wrapper's settings name it.
func TestAProcessThatOnlySeemsToBeTheServices(t *testing.T) {
	const planted = `C:\Users\eve\kubelet.exe`
	now := time.Now()
	runner := platform.Process{PID: 4, Image: `C:\k\runner.exe`, Started: now}
	for _, c := range []struct {
		began time.Duration // of the process, after the service's
		want  string
	}{{-time.Hour, ""}, {time.Second, planted}} {
		i := &inspection{
			question:  &agentv1.InspectComponent{Destination: `C:\k\kubelet.exe`},
			service:   platform.ServiceStatus{State: platform.Running, PID: 4},
			processes: []platform.Process{{PID: 9, ParentPID: 4, Image: planted, Started: now.Add(c.began)}, runner},
		}
		if p := i.running("", false); p.Image != c.want {
			t.Errorf("%v after the service: %q, want %q", c.began, p.Image, c.want)
		}
	}
}
