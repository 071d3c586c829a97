package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster/documents"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// sign is a rule about what a cluster reports of pods for Windows: the status of a Pod, or an Event about a pod or its
// controller. The first sign that fits a report counts.
type sign struct {
	Rule
	is   string // completes "Pod web: …"
	fits func(said) bool
}

// said is a report of a cluster about pods.
type said struct {
	at     path
	about  string // such as Pod shop/web
	reason string // such as ErrImagePull
	text   string
	node   string
	code   int32 // of a container that has ended, if exited
	exited bool
	waits  bool // a container waits
}

// statusRules are about what kubelet, the scheduler and controllers report of pods for Windows.
func statusRules() (all []Rule) {
	known := signs()
	for i, s := range known {
		s.object = func(o *object, m *manifests, found report) {
			for _, one := range m.saidBy(o) {
				if slices.IndexFunc(known, func(s sign) bool { return s.fits(one) }) == i {
					found(seen{at: one.at, what: s.what(one, m), evidence: one.evidence()})
				}
			}
		}
		s.aboutStatus = true
		all = append(all, s.Rule)
	}
	return all
}

// what returns what is wrong with the pods, with the versions of their node.
func (s sign) what(one said, m *manifests) string {
	what := one.about + ": " + s.is
	if one.exited {
		what = fmt.Sprintf("%s: %s", one.about, exitOf(one.code))
	}
	for _, n := range m.nodes {
		if n.Name == one.node && n.Status.NodeInfo.KernelVersion != "" {
			return fmt.Sprintf("%s (%s is Windows %s, %s)", what, n.Name, n.Status.NodeInfo.KernelVersion, n.Status.NodeInfo.ContainerRuntimeVersion)
		}
	}
	return what
}

// evidence returns the end of the report, since the cause is there.
func (s said) evidence() string {
	const most = 300
	text := strings.Join(strings.Fields(s.text), " ")
	if runes := []rune(text); len(runes) > most {
		text = "…" + string(runes[len(runes)-most:])
	}
	return strings.TrimSuffix(cmp.Or(s.reason, "report")+": "+text, ": ")
}

// has returns a test for reports that have one of some words, in any case of letters.
func has(words ...string) func(said) bool {
	return func(s said) bool {
		text := strings.ToLower(s.text)
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
	}
}

// reasoned returns a test for reports with one of some reasons.
func reasoned(reasons ...string) func(said) bool {
	return func(s said) bool { return slices.Contains(reasons, s.reason) }
}

// newSign returns a sign. what completes "Pod web: …", and bad is an example.
func newSign(id, expects, what, means, remedy, source, bad string, fits func(said) bool) sign {
	return sign{Rule{ID: id, Severity: finding.Error, Effect: Fails, Title: expects, Means: means, Remedy: remedy, Source: source,
		Bad: bad, Good: healthyPod}, what, fits}
}

// signs returns the signs, the more special ones first. Each example has the words of a public report.
func signs() []sign {
	return []sign{
		newSign("pod-platform", "the image has a variant for the node", "the image has no variant for the node",
			"containerd takes a variant of the image whose os.version has the build of the node, or none at all. Older and newer builds need Hyper-V isolation or another tag.",
			"choose a tag for the build of the node, or place the pods on nodes of the image's build", "https://github.com/containerd/containerd/issues/6989",
			waiting("ErrImagePull", `failed to pull and unpack image "registry.example/windows/servercore:ltsc2019": no match for platform in manifest: not found`),
			has("no match for platform in manifest", "no matching manifest for")),
		newSign("pod-build", "the build of the image is that of the node", "the build of the image is not that of the node",
			"without Hyper-V isolation, Windows runs containers of its own build alone, of Server 2022 and 2025 also some others. A pause image or a base image of another build is enough.",
			"choose an image for the build of the node, also for the sandbox image of containerd", "https://github.com/kubernetes/kubernetes/issues/74019",
			event("Pod", "web", "FailedCreatePodSandBox", "failed to create shim task: hcs::CreateComputeSystem 5eae0810: The container operating system does not match the host operating system.: unknown"),
			has("operating system does not match", "operating system of the container does not match", "0xc0370101")),
		newSign("pod-handler", "containerd has the runtime handler of the RuntimeClass", "containerd does not have the runtime handler of the RuntimeClass",
			"no sandbox is made.", "add the handler to containerd's configuration on the node, or choose another RuntimeClass",
			"https://kubernetes.io/docs/concepts/containers/runtime-class/",
			event("Pod", "web", "FailedCreatePodSandBox", `failed to get sandbox runtime: no runtime for "runhcs-wcow-hypervisor" is configured`),
			has("no runtime for", "runtime handler")),
		newSign("pod-network", "the pod network connects the pods", "the pod network does not connect the pods",
			"the CNI plugin or the host network service fails, so no sandbox is made.",
			"look at the node's networks and at its pod network: `swdt doctor` and `swdt hns networks`", "https://github.com/Azure/aks-engine/issues/853",
			event("Pod", "web", "FailedCreatePodSandBox", `failed to setup network for sandbox "36fe0": plugin type="win-overlay" failed (add): HNS failed with error : Element not found.`),
			has("failed to setup network for sandbox", "networkplugin cni failed", "cni plugin not initialized", "hns failed with error", "hnscall failed")),
		newSign("pod-name-reserved", "an earlier start of the container has returned", "an earlier start of the container did not return",
			"containerd still holds the name of a container whose creation hangs, often in the host compute service or in a snapshot.",
			"look at what hangs: `swdt hcs list` and containerd's log; a restart of containerd frees the name", "https://github.com/containerd/containerd/issues/4604",
			event("Pod", "web", "Failed", `failed to reserve container name "web_web-1_shop_0": name "web_web-1_shop_0" is reserved for "94d1c"`),
			has("failed to reserve container name", "failed to reserve sandbox name")),
		newSign("pod-root", "a container with runAsNonRoot has another user than an administrator", "the user is an administrator, and runAsNonRoot is set",
			"kubelet does not start the container.", "write another user in windowsOptions.runAsUserName, such as ContainerUser",
			kubernetesAt+"pkg/kubelet/kuberuntime/security_context_windows.go",
			waiting("CreateContainerConfigError", "container's runAsUserName (ContainerAdministrator) which will be regarded as root identity and will break non-root policy"),
			has("break non-root policy", "runasnonroot and image will run as root")),
		newSign("pod-user", "Windows knows the user of the container", "Windows does not know the user of the container",
			"the image or the node has no such user, or Windows asks for a password.", "write a user of the image, or for HostProcess containers a service account or a local group",
			hcsshimAt+"internal/jobcontainers/logon.go",
			waiting("RunContainerError", `failed to create containerd task: failed to create shim task: failed to logon user "web": The user name or password is incorrect.: unknown`),
			has("user name or password is incorrect", "no mapping between account names and security ids")),
		newSign("pod-program", "the image has the program", "the image does not have the program",
			"Windows does not find the first word of the command: a program of Linux, a script without its interpreter, a path without a drive, or a word of cmd such as echo.",
			"name a program of the image, such as cmd /c or powershell -Command", "https://github.com/containerd/containerd/issues/6300",
			waiting("RunContainerError", "hcs::System::CreateProcess 544494: The system cannot find the file specified.: unknown"),
			func(s said) bool {
				return has("createprocess")(s) && has("cannot find the file", "cannot find the path", "(0x2)", "is not a valid win32 application")(s)
			}),
		newSign("pod-mount", "the volumes are mounted", "a volume is not mounted",
			"kubelet or containerd cannot mount it on Windows.", "compare the volume with what Windows can mount: SMB, CSI drivers with pods for Windows, folders and named pipes",
			"https://kubernetes.io/docs/concepts/storage/windows-storage/",
			event("Pod", "web", "FailedMount", `MountVolume.SetUp failed for volume "data" : only cifs mount is supported by now, fstype: nfs`),
			func(s said) bool {
				return reasoned("FailedMount", "FailedAttachVolume", "FailedMapVolume")(s) || has("destination path can not be c drive")(s)
			}),
		newSign("pod-os", "the node has the operating system that the pods ask for", "the node has another operating system than the pods ask for",
			"kubelet refuses the pods, and their controller makes more of them.", selectorRemedy+" and spec.os.name: windows", kubernetesAt+"pkg/kubelet/lifecycle/predicate.go",
			failed("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"),
			reasoned("PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch")),
		newSign("pod-refused", "kubelet admits the pods", "kubelet refuses the pods", "the node has too little of something, or does not support a field.",
			"read the message, and change the pods or the node", kubernetesAt+"pkg/kubelet/lifecycle/handlers.go",
			failed("OutOfmemory", "Node didn't have enough resource: memory, requested: 8589934592, used: 6442450944, capacity: 8000000000"),
			func(s said) bool {
				return strings.HasPrefix(s.reason, "OutOf") || slices.Contains(refusals(), s.reason)
			}),
		newSign("pod-rejected", "the API server accepts the pods of a controller", "the API server rejects the pods of a controller", "the controller makes no pods, and tries again.",
			"correct the fields that the message names; `swdt lint` finds them in manifests", "https://kubernetes.io/docs/concepts/security/pod-security-admission/",
			event("ReplicaSet", "web-1", "FailedCreate", `Error creating: pods "web-1-" is forbidden: violates PodSecurity "baseline:latest": hostProcess`),
			reasoned("FailedCreate")),
		newSign("pod-unscheduled", "the scheduler finds a node", "the scheduler finds no node", "no node has the labels, the room or the tolerated taints.",
			"compare the nodes with the pods: place-no-node names the reason of each Windows node", "https://kubernetes.io/docs/concepts/scheduling-eviction/",
			unscheduled, reasoned("Unschedulable", "FailedScheduling")),
		newSign("pod-image", "the image is pulled", "the image is not pulled", "the registry does not answer, wants other credentials, or has no such image.",
			"check it with `swdt image check`, and imagePullSecrets and proxies", "https://kubernetes.io/docs/concepts/containers/images/",
			waiting("ImagePullBackOff", `Back-off pulling image "registry.example/web:v1"`),
			reasoned("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")),
		newSign("pod-exit", "no container ends with a status of Windows", "a container ended with a status of Windows", "the status names why Windows or the runtime of the program ended it.",
			"read the last lines of the log with `kubectl logs --previous`", "https://learn.microsoft.com/openspecs/windows_protocols/ms-erref/596a1078-e883-4972-9bbc-49e60bebca55",
			exited, func(s said) bool { return s.exited }),
		newSign("pod-crash", "the containers go on running", "a container ends again and again",
			"kubelet starts it after ever longer waits, of up to five minutes.",
			"read the last lines of the log with `kubectl logs --previous`, and the exit code", "https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/",
			exampleHead+exampleOS+exampleNode+exampleList+"status: {containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff, message: back-off 5m0s restarting failed container}}, "+
				"lastState: {terminated: {reason: Error, exitCode: 1}}}]}\n",
			reasoned("CrashLoopBackOff", "BackOff")),
		newSign("pod-probe", "the probes succeed", "a probe of a container fails",
			"kubelet starts the container again, or takes the pod out of its Services.",
			"read the message; starting PowerShell takes longer than the default timeout of 1 s", "https://kubernetes.io/docs/concepts/workloads/pods/probes/",
			event("Pod", "web", "Unhealthy", "Readiness probe failed: command timed out"),
			reasoned("Unhealthy", "ProbeWarning")),
		newSign("pod-ended", "the pod is not ended by kubelet", "kubelet ended the pod",
			"the node was short of something, it was shut down, or the pod was allowed to run for a time.",
			"read the message; a controller makes another pod", "https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/",
			failed("Evicted", "The node was low on resource: memory. Threshold quantity: 500Mi, available: 396Mi."),
			reasoned("Evicted", "DeadlineExceeded", "NodeShutdown", "Terminated", "NodeLost", "Preempting")),
		newSign("pod-gated", "the scheduler may place the pods", "a scheduling gate holds the pods back",
			"the program that set the gate has to remove it.", "look at spec.schedulingGates, and for the program",
			"https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/",
			strings.Replace(unscheduled, "Unschedulable", "SchedulingGated", 1), reasoned("SchedulingGated")),
		newSign("pod-start", "the containers start", "a container does not start", "kubelet or containerd reports another error.",
			"read the message, and the logs of kubelet and containerd: `swdt logs kubelet`", "https://kubernetes.io/docs/tasks/debug/debug-application/debug-pods/",
			waiting("CreateContainerError", "context deadline exceeded"),
			func(s said) bool {
				return s.waits && s.reason != "ContainerCreating" && s.reason != "PodInitializing" || s.reason == "FailedCreatePodSandBox"
			}),
	}
}

// refusals are the reasons for which kubelet refuses pods (admissionRejectionReasons in pkg/kubelet/allocation of Kubernetes
// 1.36.3), besides those about the operating system and OutOf….
func refusals() []string {
	return []string{"AppArmor", "InvalidNodeInfo", "InitContainerRestartPolicyForbidden", "SupplementalGroupsPolicyNotSupported",
		"UnexpectedAdmissionError", "UnknownReason", "UnexpectedPredicateFailureType", "NodeAffinity", "NodePorts", "TaintToleration",
		"SysctlForbidden", "TopologyAffinityError", "PodLevelResourcesNotSupported", "PodFeatureUnsupported"}
}

// exitOf returns for people the status with which Windows ended a process.
func exitOf(code int32) string {
	status := uint32(code)
	if what := statuses()[status]; what != "" {
		return fmt.Sprintf("a container ended with 0x%08X: %s", status, what)
	}
	return fmt.Sprintf("a container ended with 0x%08X, an error of Windows", status)
}

// endedByCtrlC is the status of a program that Ctrl-C has ended, as kubelet ends containers.
const endedByCtrlC = 0xC000013A

// isStatus reports whether an exit code is a status of Windows, and no number of the program's own such as -1.
func isStatus(code uint32) bool {
	return statuses()[code] != "" || code >= 0xC0000000 && code < 0xD0000000
}

// statuses are the statuses that containers of public reports ended with (ntstatus.h, and CLR's exception).
func statuses() map[uint32]string {
	return map[uint32]string{
		0xC0000005: "the program read or wrote memory that it does not have",
		0xC0000017: "there was no memory",
		0xC00000FD: "the stack of the program was too small",
		0xC000012D: "the limit of memory was reached (commit)",
		0xC0000135: "a DLL is missing: the base image may be too small, such as nanoserver",
		0xC000013A: "it was ended by Ctrl-C, as a stopped container is",
		0xC0000139: "a DLL lacks a function: the base image may be of another version",
		0xC0000142: "a DLL could not be initialised: the program may need a desktop",
		0xC0000374: "the heap of the program is damaged",
		0xC0000409: "the program ended itself after an error (fail fast)",
		0xE0434352: "an exception of .NET was not handled",
	}
}

// saidBy returns what a Pod with a status, or an Event about pods for Windows, reports.
func (m *manifests) saidBy(o *object) []said {
	switch {
	case o.kind == "Pod" && o.pods != nil && o.pods.system.name == corev1.Windows:
		return saidByStatus(o)
	case o.kind == "Event":
		return m.saidByEvent(o)
	}
	return nil
}

func saidByStatus(o *object) (all []said) {
	var status corev1.PodStatus
	if o.at(path{"status"}) == nil || o.decode(path{"status"}, &status) != nil {
		return nil
	}
	add := func(s said) {
		s.about, s.node = o.String(), o.pods.spec.NodeName
		all = append(all, s)
	}
	if status.Phase == corev1.PodFailed && status.Reason != "" {
		add(said{at: path{"status", "reason"}, reason: status.Reason, text: status.Message})
	}
	for i, c := range status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			add(said{at: path{"status", "conditions"}.index(i), reason: c.Reason, text: c.Message})
		}
	}
	for _, list := range []struct {
		name string
		all  []corev1.ContainerStatus
	}{{"initContainerStatuses", status.InitContainerStatuses}, {"containerStatuses", status.ContainerStatuses}} {
		for i, c := range list.all {
			at := path{"status", list.name}.index(i)
			if w := c.State.Waiting; w != nil {
				add(said{at: at.child("state", "waiting"), reason: w.Reason, text: w.Message, waits: w.Reason != ""})
			}
			ended, key := c.State.Terminated, "state"
			if ended == nil {
				ended, key = c.LastTerminationState.Terminated, "lastState"
			}
			if ended == nil {
				continue
			}
			one := said{at: at.child(key, "terminated"), reason: ended.Reason, text: cmp.Or(ended.Message, fmt.Sprintf("exit code %d", ended.ExitCode))}
			if isStatus(uint32(ended.ExitCode)) && !(c.Ready && uint32(ended.ExitCode) == endedByCtrlC) {
				one.code, one.exited = ended.ExitCode, true
			} else if ended.Message == "" {
				continue
			}
			add(one)
		}
	}
	return all
}

func (m *manifests) saidByEvent(o *object) []said {
	var e corev1.Event
	if o.decode(nil, &e) != nil || e.Type != corev1.EventTypeWarning {
		return nil
	}
	of := m.windows[about{e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name}]
	if of == nil || of.isOvertaken(e) {
		return nil
	}
	name := e.InvolvedObject.Name
	if e.InvolvedObject.Namespace != "" {
		name = e.InvolvedObject.Namespace + "/" + name
	}
	return []said{{at: path{"message"}, about: e.InvolvedObject.Kind + " " + name, reason: e.Reason, text: e.Message, node: e.Source.Host}}
}

// isOvertaken reports whether an event is about an earlier object of that name, or about a pod that is ready or has ended
// since.
func (o *object) isOvertaken(e corev1.Event) bool {
	if uid := documents.Text(o.node, "metadata", "uid"); uid != "" && e.InvolvedObject.UID != "" && uid != string(e.InvolvedObject.UID) {
		return true
	}
	var status corev1.PodStatus
	if o.kind != "Pod" || o.decode(path{"status"}, &status) != nil {
		return false
	}
	return status.Phase == corev1.PodSucceeded || slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue ||
			c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && e.Reason == "FailedScheduling"
	})
}

// The examples of reports.
const (
	healthyPod  = exampleHead + exampleOS + exampleNode + exampleList + "status: {phase: Running, containerStatuses: [{name: web, state: {running: {}}}]}\n"
	unscheduled = exampleHead + exampleOS + exampleNode + exampleList +
		"status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/3 nodes are available'}]}\n"
	exited = exampleHead + exampleOS + exampleNode + exampleList +
		"status: {containerStatuses: [{name: web, lastState: {terminated: {reason: Error, exitCode: -1073741515}}}]}\n"
)

func waiting(reason, message string) string {
	return exampleHead + exampleOS + exampleNode + exampleList + fmt.Sprintf("status: {containerStatuses: [{name: web, state: {waiting: {reason: %s, message: %q}}}]}\n", reason, message)
}

func failed(reason, message string) string {
	return exampleHead + exampleOS + exampleNode + exampleList + fmt.Sprintf("status: {phase: Failed, reason: %s, message: %q}\n", reason, message)
}

// event returns an event about an object, with that object.
func event(kind, name, reason, message string) string {
	maker := strings.Replace(exampleHead+exampleOS+exampleNode+exampleList, "name: web\nspec", "name: "+name+"\nspec", 1)
	if kind != "Pod" {
		maker = fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata: {name: %s}\nspec:\n  template:\n    spec:\n%s", kind, name, indented(exampleOS+exampleNode+exampleList, "    "))
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Event\nmetadata: {name: a}\ntype: Warning\ninvolvedObject: {kind: %s, name: %s}\nreason: %s\nmessage: %q\n---\n%s", kind, name, reason, message, maker)
}
