package doctor

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/preflight"
	"github.com/swdt-dev/swdt/internal/remedy"
	"github.com/swdt-dev/swdt/internal/ui"
)

func serviceRules() []Rule {
	services := []string{"services"}
	return []Rule{
		{
			ID: "kubelet-service", Title: "the service kubelet runs", Severity: Error, Needs: services, Link: docsDebug,
			Means:  "The node is not Ready, and no pod on it is looked after.",
			Remedy: "see why it ended: `swdt logs kubelet --tail 50`; then `swdt exec -- net start kubelet`", look: runs("kubelet", Error),
		},
		{
			ID: "containerd-service", Title: "the service containerd runs", Severity: Error, Needs: services, Link: docsDebug,
			Means:  "kubelet has no container runtime: it ends itself, or the node is not Ready.",
			Remedy: "see why it ended: `swdt logs containerd --tail 50`; then `swdt exec -- net start containerd`", look: runs("containerd", Error),
		},
		{
			ID: "kube-proxy-service", Title: "kube-proxy runs, where it is a service", Severity: Error, Needs: services, Link: docsDebug,
			Means:  "Services that change are not followed: pods reach addresses that are gone.",
			Remedy: "see why it ended: `swdt logs kube-proxy --tail 50`; then `swdt exec -- net start kube-proxy`", look: runsIfThere("kube-proxy"),
		},
		{
			ID: "csi-proxy-service", Title: "csi-proxy runs, where it is a service", Severity: Warning, Needs: services,
			Means:  "CSI drivers that use it cannot mount volumes: pods with some wait for ever.",
			Remedy: "`swdt exec -- net start csi-proxy`", look: runsIfThere("csi-proxy"),
			Link: "https://github.com/kubernetes-csi/csi-proxy",
		},
		{
			ID: "hns-service", Title: "the host network service runs", Severity: Error, Needs: services, Link: docsDebug,
			Means:  "It makes the networks of containers: without it no pod gets an address, and kube-proxy no load balancer.",
			Remedy: "`swdt exec -- net start hns`; see `swdt events --channel hns`", look: runsIfThere("hns"),
		},
		{
			ID: "vmcompute-service", Title: "the host compute service runs", Severity: Error, Needs: services, Link: docsDebug,
			Means:  "It makes containers: without it none starts, and none is seen to end.",
			Remedy: "`swdt exec -- net start vmcompute`; see `swdt events --channel hcs`", look: runsIfThere("vmcompute"),
		},
		{
			ID: "service-start", Title: "the services start with Windows", Severity: Warning, Needs: services, Link: docsJoin,
			Means:  "After a reboot the node does not come back by itself.",
			Remedy: "`swdt exec -- sc.exe config NAME start= auto`", look: lookAtStart,
		},
		{
			ID: "service-recovery", Title: "the services are started again when they die", Severity: Info, Needs: services, Link: docsJoin,
			Means:  "A crash of kubelet or containerd takes the node down until somebody comes.",
			Remedy: "`swdt exec -- sc.exe failure NAME reset= 86400 actions= restart/15000/restart/15000/restart/15000`", look: lookAtRecovery,
		},
		{
			ID: "kubelet-after-containerd", Title: "kubelet is started after containerd", Severity: Info, Needs: services, Link: docsJoin,
			Means:  "After a reboot kubelet may find no runtime, end itself, and count as crashed.",
			Remedy: "`swdt exec -- sc.exe config kubelet depend= containerd`", look: lookAtOrder,
		},
		asBeforeJoin(Rule{
			ID: "container-runtime", Title: "there is one container runtime, and one Kubernetes", Severity: Warning, Needs: services, Link: docsJoin,
			Means: "Two runtimes share networks and disk badly, and two that manage the machine undo each other's work.",
		}, seenServices),
	}
}

// runs finds that a service is missing or does not run.
func runs(name string, severity Severity) func(*Facts) []Finding {
	return func(f *Facts) []Finding {
		if _, ok := (*f.Services.Value)[name]; !ok {
			return one(found("", "there is no service %s", name).as(severity).remedied("`swdt join` makes the machine a node, with its services"))
		}
		return runsIfThere(name)(f)
	}
}

func runsIfThere(name string) func(*Facts) []Finding {
	return func(f *Facts) []Finding {
		service, ok := (*f.Services.Value)[name]
		if !ok || service.State == string(host.Running) {
			return nil
		}
		return one(found(ending(service), "the service %s is %s", service.Name, cmp.Or(ui.Words(service.State), "in no known state")))
	}
}

// ending is how a service that does not run has ended.
func ending(s preflight.Service) string {
	const never = 1077 // ERROR_SERVICE_NEVER_STARTED
	seen := fmt.Sprintf("exit code %d", s.ExitCode)
	switch {
	case s.Running(): // it is on its way
		return ""
	case s.ExitCode == never:
		seen = "it was not started since Windows was"
	case s.ExitCode == 0:
		seen = "it was stopped, or ended by itself without an error"
	}
	if s.StartType == string(host.StartDisabled) {
		seen += "; its start type is disabled"
	}
	return seen
}

// ours are the services that make a node.
func ours(f *Facts) (all []preflight.Service) {
	for _, name := range []string{"containerd", "kubelet", "kube-proxy"} {
		if service, ok := (*f.Services.Value)[name]; ok {
			all = append(all, service)
		}
	}
	return all
}

func lookAtStart(f *Facts) (all []Finding) {
	for _, s := range ours(f) {
		if s.StartType != "" && s.StartType != string(host.StartAuto) {
			all = append(all, found("its start type is "+s.StartType, "the service %s does not start with Windows", s.Name).
				remedied("%s", remedy.Command("exec", "--", "sc.exe", "config", s.Name, "start=", "auto")))
		}
	}
	return all
}

func lookAtRecovery(f *Facts) (all []Finding) {
	for _, s := range ours(f) {
		if s.Restarts != nil && *s.Restarts == 0 {
			all = append(all, found("no recovery action is set", "nobody starts the service %s again when it dies", s.Name).
				remedied("%s", remedy.Command("exec", "--", "sc.exe", "failure", s.Name, "reset=", "86400", "actions=", "restart/15000/restart/15000/restart/15000")))
		}
	}
	return all
}

func lookAtOrder(f *Facts) []Finding {
	kubelet, there := (*f.Services.Value)["kubelet"]
	_, containerd := (*f.Services.Value)["containerd"]
	if !there || !containerd || containsFolded(kubelet.Dependencies, "containerd") {
		return nil
	}
	return one(found("it depends on: "+cmp.Or(strings.Join(kubelet.Dependencies, ", "), "nothing"), "the service kubelet does not wait for containerd"))
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
			ID: "unfinished-push", Title: "no push of binaries is unfinished", Severity: Error, Needs: []string{"transactions"}, Link: docsPush,
			Means:  "swdt was replacing binaries when it was cut off, and nobody has finished or undone it.",
			Remedy: "`swdt kubernetes` finishes or undoes it, then does what it is asked for", look: lookAtSwaps,
		},
		asBeforeJoin(Rule{
			ID: "program-folders", Title: "only administrators can change the programs of services", Severity: Warning, Needs: []string{"machine", "changeablePrograms"}, Link: docsPush,
			Means: "SYSTEM runs what is there: who can replace a program, or put a DLL beside it, owns the node.",
		}, func(f *Facts) preflight.Seen {
			return preflight.Seen{Machine: f.Machine.Value.host(), Changeable: *f.Changeable.Value}
		}),
		{
			ID: "outdated-process", Title: "the services run the programs that are on the disk", Severity: Warning, Needs: []string{"programs"}, Link: docsPush,
			Means:  "A program was replaced and its service was not restarted: what runs is not what the file's version says, until the next restart or crash.",
			Remedy: "restart it: `swdt kubernetes --only NAME`", look: lookAtOutdated,
		},
		{
			ID: "push-leftovers", Title: "no push has left files", Severity: Info, Needs: []string{"programs"}, Link: docsPush,
			Means:  "Half-sent binaries, and old ones that a program still ran when they were replaced, take space.",
			Remedy: "the next `swdt kubernetes` removes those that no program runs", look: lookAtLeftovers,
		},
	}
}

// patience is how long a transaction may take that somebody is at work on.
const patience = 15 * time.Minute

func lookAtSwaps(f *Facts) (all []Finding) {
	for _, s := range *f.Swaps.Value {
		seen := fmt.Sprintf("transaction %s of %s, begun %s, is %s", s.ID, s.Holder, s.Begun.UTC().Format(time.RFC3339), ui.Words(s.State))
		age := f.Taken.Sub(s.Begun)
		switch {
		case s.Result == "failed":
			all = append(all, found(seen+": "+s.Message, "a push failed, and could not be undone"))
		case s.Result != "":
			all = append(all, found(seen+": "+cmp.Or(s.Message, s.Result), "a push ended (%s) without anybody being told", s.Result).as(Info))
		case !s.Guarded:
			all = append(all, found(seen, "a push of binaries was cut off, and nobody is at work on it"))
		case age > patience:
			all = append(all, found(seen, "a push of binaries has been at work for %s", age.Round(time.Minute)).as(Warning))
		}
	}
	return all
}

func lookAtOutdated(f *Facts) (all []Finding) {
	for _, name := range []string{"kubelet", "containerd", "kube-proxy"} {
		if program := (*f.Programs.Value)[name]; program.Outdated {
			all = append(all, found(program.Path+" "+program.Version, "service %s runs another file than the one on the disk", name).
				remedied("restart it: %s", remedy.Command("kubernetes", "--only", name)))
		}
	}
	return all
}

func lookAtLeftovers(f *Facts) (all []Finding) {
	for _, name := range []string{"kubelet", "containerd", "kube-proxy"} {
		if left := (*f.Programs.Value)[name].Leftovers; len(left) > 0 {
			all = append(all, found(strings.Join(left, ", "), "a push has left files beside %s", name))
		}
	}
	return all
}
