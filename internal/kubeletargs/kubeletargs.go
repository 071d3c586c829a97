// Package kubeletargs knows the flags of kubelet as a native Windows service, by
// kubelet's version: which are needed, which an older or newer kubelet refuses,
// and in what order the node file, kubeadm and swdt decide about one.
package kubeletargs

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
	// LogRunner has kube-log-runner.exe write kubelet's log to LogFile.
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
	// removed.
	PauseImage string
}

// CommandLine is what the service kubelet runs.
func CommandLine(w Wish) (string, error) { panic("being written") }

// ParseKubeadmFlags reads kubeadm-flags.env. A missing flag file is an empty one.
func ParseKubeadmFlags(content []byte) (map[string]string, error) { panic("being written") }
