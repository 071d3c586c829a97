// Package kubeletargs computes the flags of kubelet as a native Windows
// service, by kubelet's version: which are needed, which an older or newer
// kubelet refuses, and which source decides a flag.
//
// Later sources override earlier ones:
//
//  1. swdt's defaults for every node
//  2. kubeadm-flags.env, as kubeadm wrote it
//  3. the node file's fields: join.nodeName, join.nodeIP, kubelet.nodeLabels,
//     kubelet.registerWithTaints
//  4. the node file's kubelet.extraArgs
//
// A flag with different values in 3 and 4 is an error: neither value may be lost silently. If this
// kubelet no longer supports a flag of kubeadm-flags.env, the flag is left out, since kubeadm wrote
// it for an older kubelet. Such a flag in the node file is an error.
package kubeletargs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/commandline"
)

// Paths on the node. kubeadm and the published node images use the same paths.
const (
	KubeletExe   = `C:\k\kubelet.exe`
	LogRunnerExe = `C:\k\kube-log-runner.exe`
	LogFile      = `C:\var\log\kubelet\kubelet.log`
	// ConfigFolder has the drop-ins that kubelet merges over its configuration, in the order of
	// their names. swdt writes the drop-in DropIn.
	ConfigFolder = `C:\var\lib\kubelet\config.d`
	DropIn       = ConfigFolder + `\90-swdt.conf`
	// FlagsFile is the file in which kubeadm writes kubelet's flags. A kubelet that runs as a
	// native service does not read this file, so swdt must pass the flags to kubelet.
	FlagsFile = `C:\var\lib\kubelet\kubeadm-flags.env`
	// RuntimeEndpoint is containerd's pipe. Kubelet's own default is a Linux
	// socket, even on Windows.
	RuntimeEndpoint = "npipe:////./pipe/containerd-containerd"
)

// Wish describes how kubelet is started. A zero field has a default, or its flag is left out.
type Wish struct {
	// Version is the version of kubelet, with or without v. It is required: the flags depend on
	// it.
	Version  string
	NodeName string // --hostname-override
	NodeIP   string // --node-ip, from the node file
	// Address is the --node-ip that is used if neither the node file nor kubeadm has one.
	Address string
	// KubeletExe and LogRunnerExe are paths on the node. Default: the constants.
	KubeletExe   string
	LogRunnerExe string
	// LogRunner makes kube-log-runner.exe write kubelet's log to LogFile. Without LogRunner, a
	// kubelet below 1.26 writes its own log beside LogFile, and a newer kubelet writes no log.
	LogRunner bool
	LogFile   string
	// LogFileSize is the size at which kube-log-runner begins a new file, as a quantity of Kubernetes, and LogFileAge
	// is how long it keeps older ones. A size of "" or 0 means that it writes one file. A kube-log-runner below 1.34
	// has neither flag, and the version is taken to be that of kubelet.
	LogFileSize string
	LogFileAge  time.Duration
	// KubeadmFlags are the flags of kubeadm-flags.env, from ParseKubeadmFlags.
	KubeadmFlags map[string]string
	// ExtraArgs, NodeLabels and RegisterWithTaints are fields of spec.kubernetes.kubelet.
	ExtraArgs          map[string]string
	NodeLabels         map[string]string
	RegisterWithTaints []string
	// ConfigDropIn makes kubelet read ConfigFolder, in which swdt writes kubelet.configPatch.
	ConfigDropIn bool
	// PauseImage is the image of pod sandboxes. Only a kubelet below 1.27 gets a flag with the
	// image's name, so that this kubelet keeps the image when it frees disk space.
	PauseImage string
}

// FieldError reports a field of the node file whose value cannot be used.
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

// CommandLine returns the command line of the kubelet service.
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
		words = append(words, w.logRunner(minor)...)
	}
	words = append(words, w.KubeletExe, "--windows-service")
	for _, flag := range flags {
		words = append(words, "--"+flag.name+"="+flag.value)
	}
	return commandline.Join(words...), nil
}

// LogRunnerWords returns the words that start a program whose log kube-log-runner writes to a file. The fields of w that
// concern kubelet are ignored.
func LogRunnerWords(w Wish) ([]string, error) {
	minor, err := minorOf(w.Version)
	if err != nil {
		return nil, err
	}
	orElse(&w.LogRunnerExe, LogRunnerExe)
	return w.logRunner(minor), nil
}

func (w Wish) logRunner(minor int) []string {
	return append([]string{w.LogRunnerExe, "--log-file=" + w.LogFile}, w.rotation(minor)...)
}

// rotation returns the flags with which kube-log-runner keeps the log from filling the disk.
func (w Wish) rotation(minor int) []string {
	const since = 34 // component-base v0.34.0 has the flags, v0.33.0 does not
	if minor < since || strings.Trim(w.LogFileSize, "0") == "" {
		return nil
	}
	flags := []string{"--log-file-size=" + w.LogFileSize}
	if w.LogFileAge > 0 {
		flags = append(flags, "--log-file-age="+w.LogFileAge.String())
	}
	return flags
}

type flag struct{ name, value string }

// flags returns all of kubelet's flags except --windows-service. The flags of every node's kubelet
// are first, in their usual order. The other flags follow, sorted by name.
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
	if w.Address != "" {
		others["node-ip"] = w.Address
	}
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

// base returns the flags of every node's kubelet. Each path has a drive, since the drive of a
// path without one depends on the service's working folder.
func (w Wish) base(minor int) []flag {
	flags := []flag{
		{"config", `C:\var\lib\kubelet\config.yaml`},
		{"bootstrap-kubeconfig", `C:\etc\kubernetes\bootstrap-kubelet.conf`},
		{"kubeconfig", `C:\etc\kubernetes\kubelet.conf`},
		{"cert-dir", `C:\var\lib\kubelet\pki`},
		{"container-runtime-endpoint", RuntimeEndpoint},
		// The next three flags turn off features that Windows does not have. swdt sets no other flag
		// that users may want to set in kubelet's configuration or its drop-ins, since a flag
		// overrides both.
		{"cgroups-per-qos", "false"},
		{"enforce-node-allocatable", ""},
		{"resolv-conf", ""},
		// Windows has no OOM killer and no reservation that it enforces: with the priority of pods, kubelet does not get
		// the CPU to evict them. (WMCO pkg/services/services.go, AgentBaker kubeletfunc.ps1)
		{"windows-priorityclass", "ABOVE_NORMAL_PRIORITY_CLASS"},
	}
	if minor < goneFlags()["network-plugin"] { // dockershim is these versions' default runtime
		flags = append(flags, flag{"container-runtime", "remote"}, flag{"network-plugin", "cni"},
			flag{"image-pull-progress-deadline", "20m"})
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

// field is a field of the node file and the corresponding flag.
type field struct{ name, flag, value string }

// fields returns the node file's fields that are set, with their flags.
func (w Wish) fields(minor int) ([]field, error) {
	if w.ConfigDropIn && minor < 30 {
		return nil, &FieldError{
			Field:  kubeletField + ".configPatch",
			What:   fmt.Sprintf("needs kubelet 1.30 or newer, and this one is %s", w.Version),
			Remedy: "use a newer Kubernetes, or set the flag in extraArgs if there is one",
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

// refused returns an error if extraArgs has a flag that this kubelet does not support, or a flag
// that contradicts another field of the node file.
func (w Wish) refused(minor int, fields []field) error {
	for _, name := range slices.Sorted(maps.Keys(w.ExtraArgs)) {
		here := fmt.Sprintf("%s.extraArgs[%s]", kubeletField, name)
		if gone, ok := goneFlags()[name]; ok && minor >= gone {
			return &FieldError{Field: here, What: fmt.Sprintf("is a flag that kubelet no longer supports since 1.%d",
				gone), Remedy: "remove it"}
		}
		if since, ok := newFlags()[name]; ok && minor < since {
			return &FieldError{Field: here, What: fmt.Sprintf("is a flag that kubelet supports only since 1.%d", since),
				Remedy: "remove it, or use a newer Kubernetes"}
		}
		if name == "config-dir" && w.ConfigDropIn {
			return &FieldError{Field: here, What: "is set beside configPatch, which is written to " + ConfigFolder,
				Remedy: "keep one of them"}
		}
		for _, field := range fields {
			if field.flag == name && field.value != w.ExtraArgs[name] {
				return &FieldError{Field: here, What: "differs from " + field.name, Remedy: "keep " +
					field.name + " alone"}
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
