package windows

import (
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
)

// managerOf returns the process of the machine's Service Control Manager, which starts once per boot. Containers with
// process isolation have a services.exe each, in a session of their own: the machine's is the oldest of session 0.
func managerOf(list []platform.Process) (manager platform.Process, found bool) {
	for _, p := range list {
		if !strings.EqualFold(p.Name, "services.exe") {
			continue
		}
		inZero, wasInZero := p.Session == 0, manager.Session == 0
		if !found || inZero && !wasInZero || inZero == wasInZero && p.Started.Before(manager.Started) {
			manager, found = p, true
		}
	}
	return manager, found
}
