package doctor

import (
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// lookAtRecovery reports the services that Windows does not restart for ever. nssm restarts its program itself.
func lookAtRecovery(f *Facts) (all []finding.Finding) {
	for _, s := range nodeServices(f) {
		if s.Restarts == nil || s.RestartsRepeat || runByNSSM(s) {
			continue
		}
		found := finding.New("no recovery action is set", "Windows does not restart the service %s after a crash", s.Name)
		switch {
		case s.Reboots:
			found = finding.New("its recovery actions: restart Windows",
				"Windows restarts after a failure of the service %s, and a push does not kill it if it does not stop", s.Name)
		case *s.Restarts > 0:
			evidence := "its recovery actions: " + restarts(*s.Restarts) + ", then none"
			if s.RestartsReset > 0 {
				evidence += "; counted from zero again after " + ui.Age(s.RestartsReset) + " without a crash"
			}
			found = finding.New(evidence, "after %s in a row, Windows leaves the service %s stopped", restarts(*s.Restarts),
				s.Name)
		}
		all = append(all, found.Remedied("%s", restartForEver(s.Name)))
	}
	return all
}

func restarts(n int) string {
	if n == 1 {
		return "one restart"
	}
	return strconv.Itoa(n) + " restarts"
}

// restartForEver returns the command that sets recovery actions that never end: the SCM repeats the last one.
func restartForEver(service string) string {
	return remedy.Command("exec", "--", "sc.exe", "failure", service, "reset=", "900", "actions=",
		"restart/10000/restart/20000/restart/60000")
}

func runByNSSM(s preflight.Service) bool {
	return strings.HasPrefix(folded(baseOf(s.Program())), "nssm")
}
