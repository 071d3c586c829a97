// Package kubeletargs knows the flags of kubelet as a native Windows service, by
// kubelet's version: which are needed, which an older or newer kubelet refuses,
// and who decides about one.
//
// The later of these wins over the earlier:
//
//  1. what swdt sets for every node
//  2. what kubeadm wrote to kubeadm-flags.env
//  3. the node file's fields: join.nodeName, join.nodeIP, kubelet.nodeLabels,
//     kubelet.registerWithTaints
//  4. the node file's kubelet.extraArgs
//
// 3 and 4 about the same flag is an error: neither may be lost without a word. A
// flag of kubeadm's that this kubelet does not know any more is left out, since
// kubeadm wrote it for an older one; one in the node file is an error.
package kubeletargs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/commandline"
)

// Paths on the node, as kubeadm and the published node images have them.
const (
	KubeletExe   = `C:\k\kubelet.exe`
	LogRunnerExe = `C:\k\kube-log-runner.exe`
	LogFile      = `C:\var\log\kubelet\kubelet.log`
	// ConfigFolder has the drop-ins that kubelet merges over its configuration,
	// in the order of their names; DropIn is ours.
	ConfigFolder = `C:\var\lib\kubelet\config.d`
	DropIn       = ConfigFolder + `\90-swdt.conf`
	// FlagsFile is where kubeadm writes flags that only somebody who reads it
	// hands to kubelet: a native service does not.
	FlagsFile = `C:\var\lib\kubelet\kubeadm-flags.env`
	// RuntimeEndpoint is containerd's pipe. Kubelet's own default is a socket of
	// Linux, on Windows too.
	RuntimeEndpoint = "npipe:////./pipe/containerd-containerd"
)

// Wish is what kubelet is to be started with. Zero fields have defaults or are
// left out.
type Wish struct {
	// Version of kubelet, with or without v. Needed: the flags depend on it.
	Version  string
	NodeName string // --hostname-override
	NodeIP   string // --node-ip
	// KubeletExe and LogRunnerExe are paths on the node. Default: the constants.
	KubeletExe   string
	LogRunnerExe string
	// LogRunner has kube-log-runner.exe write kubelet's log to LogFile. Without
	// it, kubelet below 1.26 writes a log of its own beside LogFile, and a newer
	// one has none.
	LogRunner bool
	LogFile   string
	// KubeadmFlags are those of kubeadm-flags.env, from ParseKubeadmFlags.
	KubeadmFlags map[string]string
	// ExtraArgs, NodeLabels and RegisterWithTaints are spec.kubernetes.kubelet's.
	ExtraArgs          map[string]string
	NodeLabels         map[string]string
	RegisterWithTaints []string
	// ConfigDropIn has kubelet read ConfigFolder: for kubelet.configPatch.
	ConfigDropIn bool
	// PauseImage is for kubelets below 1.27, which keep that image from being
	// removed when space gets short.
	PauseImage string
}

// FieldError is a wish that cannot be fulfilled.
type FieldError struct {
	Field  string // of the node file
	What   string
	Remedy string
}

func (e *FieldError) Error() string { return e.Field + " " + e.What + ": " + e.Remedy }

const (
	kubeletField = "spec.kubernetes.kubelet"
	joinField    = "spec.kubernetes.join"
)

// CommandLine is what the service kubelet runs.
func CommandLine(w Wish) (string, error) {
	minor, err := minorOf(w.Version)
	if err != nil {
		return "", err
	}
	orElse(&w.KubeletExe, KubeletExe)
	orElse(&w.LogRunnerExe, LogRunnerExe)
	orElse(&w.LogFile, LogFile)
	flags, err := w.flags(minor)
	if err != nil {
		return "", err
	}
	var words []string
	if w.LogRunner {
		words = append(words, w.LogRunnerExe, "--log-file="+w.LogFile)
	}
	words = append(words, w.KubeletExe, "--windows-service")
	for _, flag := range flags {
		words = append(words, "--"+flag.name+"="+flag.value)
	}
	return commandline.Join(words...), nil
}

type flag struct{ name, value string }

// flags are all of kubelet's but --windows-service: those that every node has in
// their usual order, then the others by name.
func (w Wish) flags(minor int) ([]flag, error) {
	fields, err := w.fields(minor)
	if err != nil {
		return nil, err
	}
	if err := w.refused(minor, fields); err != nil {
		return nil, err
	}
	base := w.base(minor)
	others := map[string]string{}
	for name, value := range w.KubeadmFlags {
		if gone, ok := goneFlags()[name]; !ok || minor < gone {
			others[name] = value
		}
	}
	for _, field := range fields {
		others[field.flag] = field.value
	}
	maps.Copy(others, w.ExtraArgs)
	for i, flag := range base {
		if value, ok := others[flag.name]; ok {
			base[i].value = value
			delete(others, flag.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		base = append(base, flag{name, others[name]})
	}
	return base, nil
}

// base is what every node's kubelet is started with. Paths have their drive: the
// service's working folder decides about it otherwise.
func (w Wish) base(minor int) []flag {
	flags := []flag{
		{"config", `C:\var\lib\kubelet\config.yaml`},
		{"bootstrap-kubeconfig", `C:\etc\kubernetes\bootstrap-kubelet.conf`},
		{"kubeconfig", `C:\etc\kubernetes\kubelet.conf`},
		{"cert-dir", `C:\var\lib\kubelet\pki`},
		{"container-runtime-endpoint", RuntimeEndpoint},
		// Windows has none of these. A flag beats kubelet's configuration and its
		// drop-ins, so that there are no others that could be set there.
		{"cgroups-per-qos", "false"},
		{"enforce-node-allocatable", ""},
		{"resolv-conf", ""},
	}
	if minor < goneFlags()["network-plugin"] { // dockershim is the default runtime
		flags = append(flags, flag{"container-runtime", "remote"}, flag{"network-plugin", "cni"}, flag{"image-pull-progress-deadline", "20m"})
	}
	if minor < goneFlags()["log-dir"] && !w.LogRunner {
		folder := w.LogFile[:max(strings.LastIndexAny(w.LogFile, `\/`), 0)]
		flags = append(flags, flag{"log-dir", folder}, flag{"logtostderr", "false"})
	}
	if w.ConfigDropIn {
		flags = append(flags, flag{"config-dir", ConfigFolder})
	}
	return flags
}

// field is a field of the node file and the flag it is.
type field struct{ name, flag, value string }

// fields are those that are set.
func (w Wish) fields(minor int) ([]field, error) {
	if w.ConfigDropIn && minor < 30 {
		return nil, &FieldError{
			Field: kubeletField + ".configPatch", What: fmt.Sprintf("needs kubelet 1.30 or newer, and this one is %s", w.Version),
			Remedy: "use a newer Kubernetes, or set the flag in extraArgs where there is one",
		}
	}
	labels := make([]string, 0, len(w.NodeLabels))
	for _, key := range slices.Sorted(maps.Keys(w.NodeLabels)) {
		if err := checkLabel(key); err != nil {
			return nil, err
		}
		labels = append(labels, key+"="+w.NodeLabels[key])
	}
	all := []field{
		{joinField + ".nodeName", "hostname-override", w.NodeName},
		{joinField + ".nodeIP", "node-ip", w.NodeIP},
		{kubeletField + ".nodeLabels", "node-labels", strings.Join(labels, ",")},
		{kubeletField + ".registerWithTaints", "register-with-taints", strings.Join(w.RegisterWithTaints, ",")},
	}
	if minor < 27 {
		all = append(all, field{"spec.kubernetes.containerd.pauseImage", "pod-infra-container-image", w.PauseImage})
	}
	return slices.DeleteFunc(all, func(f field) bool { return f.value == "" }), nil
}

// refused is what in extraArgs cannot be.
func (w Wish) refused(minor int, fields []field) error {
	for _, name := range slices.Sorted(maps.Keys(w.ExtraArgs)) {
		here := fmt.Sprintf("%s.extraArgs[%s]", kubeletField, name)
		if gone, ok := goneFlags()[name]; ok && minor >= gone {
			return &FieldError{Field: here, What: fmt.Sprintf("is a flag that kubelet does not know since 1.%d", gone), Remedy: "remove it"}
		}
		if since, ok := newFlags()[name]; ok && minor < since {
			return &FieldError{Field: here, What: fmt.Sprintf("is a flag that kubelet knows only since 1.%d", since), Remedy: "remove it, or use a newer Kubernetes"}
		}
		if name == "config-dir" && w.ConfigDropIn {
			return &FieldError{Field: here, What: "is set beside configPatch, which is written to " + ConfigFolder, Remedy: "keep one of them"}
		}
		for _, field := range fields {
			if field.flag == name && field.value != w.ExtraArgs[name] {
				return &FieldError{Field: here, What: "is set to something else than " + field.name, Remedy: "keep " + field.name + " alone"}
			}
		}
	}
	return nil
}

func orElse(value *string, fallback string) {
	if *value == "" {
		*value = fallback
	}
}
