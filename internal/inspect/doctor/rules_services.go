package doctor

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

func serviceRules() []Rule {
	services := []string{"services"}
	return []Rule{
		{
			ID: "kubelet-service", Title: "the service kubelet runs", Severity: finding.Error, Needs: services,
			Link:   docsDebug,
			Means:  "The node is not Ready, and its pods are not managed.",
			Remedy: "find why it stopped: `swdt logs kubelet --tail 50`; then `swdt exec -- net start kubelet`",
			look:   runs("kubelet", finding.Error),
		},
		{
			ID: "containerd-service", Title: "the service containerd runs", Severity: finding.Error, Needs: services,
			Link:   docsDebug,
			Means:  "kubelet has no container runtime: it exits, or the node is not Ready.",
			Remedy: "find why it stopped: `swdt logs containerd --tail 50`; then `swdt exec -- net start containerd`",
			look:   runs("containerd", finding.Error),
		},
		{
			ID: "kube-proxy-service", Title: "kube-proxy runs (if it is installed as a service)", Severity: finding.Error,
			Needs: services, Link: docsDebug,
			Means:  "Load balancers do not follow changes of Services: pods connect to addresses that no longer exist.",
			Remedy: "find why it stopped: `swdt logs kube-proxy --tail 50`; then `swdt exec -- net start kube-proxy`",
			look:   runsIfThere("kube-proxy"),
		},
		{
			ID: "csi-proxy-service", Title: "csi-proxy runs (if it is installed as a service)", Severity: finding.Warning,
			Needs:  services,
			Means:  "CSI drivers that use csi-proxy cannot mount volumes: pods with such volumes do not start.",
			Remedy: "`swdt exec -- net start csi-proxy`", look: runsIfThere("csi-proxy"),
			Link: "https://github.com/kubernetes-csi/csi-proxy",
		},
		{
			ID: "hns-service", Title: "the host network service runs", Severity: finding.Error, Needs: services,
			Link: docsDebug,
			Means: "HNS creates the networks of containers: without it no pod gets an address, and kube-proxy " +
				"cannot create load balancers.",
			Remedy: "`swdt exec -- net start hns`; see `swdt events --channel hns`", look: runsIfThere("hns"),
		},
		{
			ID: "vmcompute-service", Title: "the host compute service runs", Severity: finding.Error, Needs: services,
			Link: docsDebug,
			Means: "HCS creates containers: without it no container starts, and the runtime does not notice when " +
				"one exits.",
			Remedy: "`swdt exec -- net start vmcompute`; see `swdt events --channel hcs`",
			look:   runsIfThere("vmcompute"),
		},
		{
			ID: "service-start", Title: "the services start with Windows", Severity: finding.Warning, Needs: services,
			Link:   docsJoin,
			Means:  "After a reboot the node does not come back on its own.",
			Remedy: "`swdt exec -- sc.exe config NAME start= auto`", look: lookAtStart,
		},
		{
			ID: "service-recovery", Title: "Windows restarts the services after a crash", Severity: finding.Info,
			Needs: services, Link: docsJoin,
			Means: "After a crash, or after the last of a few restarts, the service stays stopped until it is started by " +
				"hand: the node is not Ready, and its pods are not managed.",
			Remedy: restartForEver("NAME"),
			look:   lookAtRecovery,
		},
		{
			ID: "kubelet-after-containerd", Title: "kubelet starts after containerd", Severity: finding.Info,
			Needs: services, Link: docsJoin,
			Means:  "After a reboot kubelet may find no runtime, exit, and count as crashed.",
			Remedy: "`swdt exec -- sc.exe config kubelet depend= containerd`", look: lookAtOrder,
		},
		fromPreflight(Rule{
			ID: "container-runtime", Title: "the machine has one container runtime and one Kubernetes",
			Severity: finding.Warning, Needs: services, Link: docsJoin,
			Means: "Two runtimes conflict over networks and disk, and two programs that manage the machine undo each " +
				"other's work.",
		}, gatheredServices),
	}
}

// runs returns a check that reports the service if it is missing or does not run.
func runs(name string, severity finding.Severity) func(*Facts) []finding.Finding {
	return func(f *Facts) []finding.Finding {
		if _, ok := (*f.Services.Value)[name]; !ok {
			return one(finding.New("", "there is no service %s",
				name).As(severity).Remedied("`swdt join` makes the machine a node, with its services"))
		}
		return runsIfThere(name)(f)
	}
}

// runsIfThere returns a check that reports the service if it exists and does not run.
func runsIfThere(name string) func(*Facts) []finding.Finding {
	return func(f *Facts) []finding.Finding {
		service, ok := (*f.Services.Value)[name]
		if !ok || service.State == string(platform.Running) {
			return nil
		}
		fault := finding.New(ending(service), "the service %s is %s", service.Name,
			cmp.Or(ui.Words(service.State), "in an unknown state"))
		if service.State == string(platform.Paused) {
			fault = fault.Remedied("%s", whenPaused(service))
		}
		return one(fault)
	}
}

// whenPaused returns the remedy of a paused service. nssm pauses a service whose program ends soon after
// each start, and tries again later. https://nssm.cc/usage
func whenPaused(s preflight.Service) string {
	if runByNSSM(s) {
		return fmt.Sprintf("nssm waits, since the program ended soon after its start: find why: %s; then %s",
			remedy.Command("logs", s.Name, "--tail", "50"), remedy.Command("exec", "--", "sc.exe", "continue", s.Name))
	}
	return "continue it: " + remedy.Command("exec", "--", "sc.exe", "continue", s.Name)
}

// ending describes how a service that does not run has ended.
func ending(s preflight.Service) string {
	const never = 1077 // ERROR_SERVICE_NEVER_STARTED
	seen := fmt.Sprintf("exit code %d", s.ExitCode)
	switch {
	case s.Running(): // the service is starting or stopping, or is paused
		return ""
	case s.ExitCode == never:
		seen = "it was not started since Windows started"
	case s.ExitCode == 0:
		seen = "it was stopped, or exited on its own without an error"
	}
	if s.StartType == string(platform.StartDisabled) {
		seen += "; its start type is disabled"
	}
	return seen
}

// nodeServices returns the existing services among those that make a machine a node.
func nodeServices(f *Facts) (all []preflight.Service) {
	for _, name := range []string{"containerd", "kubelet", "kube-proxy"} {
		if service, ok := (*f.Services.Value)[name]; ok {
			all = append(all, service)
		}
	}
	return all
}

func lookAtStart(f *Facts) (all []finding.Finding) {
	for _, s := range nodeServices(f) {
		if s.StartType != "" && s.StartType != string(platform.StartAuto) {
			all = append(all, finding.New("its start type is "+s.StartType,
				"the service %s does not start with Windows", s.Name).
				Remedied("%s", remedy.Command("exec", "--", "sc.exe", "config", s.Name, "start=", "auto")))
		}
	}
	return all
}

func lookAtOrder(f *Facts) []finding.Finding {
	kubelet, there := (*f.Services.Value)["kubelet"]
	_, containerd := (*f.Services.Value)["containerd"]
	if !there || !containerd || containsFolded(kubelet.Dependencies, "containerd") {
		return nil
	}
	return one(finding.New("it depends on: "+cmp.Or(strings.Join(kubelet.Dependencies, ", "), "nothing"),
		"the service kubelet does not wait for containerd"))
}

func containsFolded(all []string, name string) bool {
	for _, one := range all {
		if strings.EqualFold(one, name) {
			return true
		}
	}
	return false
}

func pushRules() []Rule {
	return []Rule{
		{
			ID: "unfinished-push", Title: "no push of binaries is unfinished", Severity: finding.Error,
			Needs: []string{"transactions"}, Link: docsPush,
			Means: "A push of binaries was interrupted, failed without being undone, takes unusually long, or " +
				"ended without its result being collected.",
			Remedy: "`swdt push` finishes or undoes that push, then pushes as usual", look: lookAtSwaps,
		},
		fromPreflight(Rule{
			ID: "program-folders", Title: "only administrators can change the programs of services",
			Severity: finding.Warning, Needs: []string{"machine", "changeablePrograms"}, Link: docsPush,
			Means: "SYSTEM runs these programs: an account that can replace one, or put a DLL beside it, controls " +
				"the node.",
		}, func(f *Facts) preflight.Gathered {
			return preflight.Gathered{Machine: f.Machine.Value.platform(), Changeable: *f.Changeable.Value}
		}),
		{
			ID: "outdated-process", Title: "the services run the current files of their programs",
			Severity: finding.Warning, Needs: []string{"programs"}, Link: docsPush,
			Means: "A program was replaced and its service was not restarted: until the next restart or crash, the " +
				"version that runs differs from the file's.",
			Remedy: "restart the service: `swdt push --only NAME`", look: lookAtOutdated,
		},
		{
			ID: "service-program", Title: "the services run the files of the node file",
			Severity: finding.Error, Needs: []string{"placements"}, Link: docsPush,
			Means: "A push is refused: it would leave the program as it is that the service runs, and tests would " +
				"test the old one.",
			Remedy: "correct destination in the node file, or register the service again", look: lookAtPlacements,
		},
		{
			ID: "push-leftovers", Title: "no files of earlier pushes remain", Severity: finding.Info,
			Needs: []string{"programs"}, Link: docsPush,
			Means:  "Partly sent binaries, and old ones that were in use when they were replaced, take space.",
			Remedy: "the next `swdt push` removes those that are not in use", look: lookAtLeftovers,
		},
	}
}

// maxSwap is the age from which a guarded transaction is reported.
const maxSwap = 15 * time.Minute

func lookAtSwaps(f *Facts) (all []finding.Finding) {
	for _, s := range *f.Swaps.Value {
		seen := fmt.Sprintf("transaction %s of %s, begun %s, is %s", s.ID, s.Holder,
			s.Begun.UTC().Format(time.RFC3339), ui.Words(s.State))
		age := f.Taken.Sub(s.Begun)
		switch {
		case s.Result == "failed":
			all = append(all, finding.New(seen+": "+s.Message, "a push failed, and could not be undone"))
		case s.Result != "":
			all = append(all, finding.New(seen+": "+cmp.Or(s.Message, s.Result),
				"a push ended (%s), and no swdt collected its result", s.Result).As(finding.Info).
				Remedied("the push is complete: the next `swdt push` collects its result"))
		case !s.Guarded:
			all = append(all, finding.New(seen, "a push of binaries was interrupted, and nothing continues it"))
		case age > maxSwap:
			all = append(all, finding.New(seen, "a push of binaries has been running for %s",
				age.Round(time.Minute)).As(finding.Warning))
		}
	}
	return all
}

func lookAtOutdated(f *Facts) (all []finding.Finding) {
	for _, name := range []string{"kubelet", "containerd", "kube-proxy"} {
		if program := (*f.Programs.Value)[name]; program.Outdated {
			all = append(all, finding.New(program.Path+" "+program.Version,
				"service %s runs another file than its current one", name).
				Remedied("restart the service: %s", remedy.Command("push", "--only", name)))
		}
	}
	return all
}

func lookAtPlacements(f *Facts) (all []finding.Finding) {
	for _, p := range *f.Placements.Value {
		if p.Runs != "" {
			all = append(all, finding.New("destination: "+p.Destination, "service %s runs %s", p.Service, p.Runs).
				Remedied("set destination: %s, or register the service again", p.Runs))
		}
	}
	return all
}

func lookAtLeftovers(f *Facts) (all []finding.Finding) {
	for _, name := range []string{"kubelet", "containerd", "kube-proxy"} {
		if left := (*f.Programs.Value)[name].Leftovers; len(left) > 0 {
			all = append(all, finding.New(strings.Join(left, ", "), "files of earlier pushes are beside %s", name))
		}
	}
	return all
}
