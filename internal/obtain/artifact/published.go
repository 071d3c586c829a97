package artifact

import (
	"fmt"
	"runtime"
)

// published is the place at which a project publishes one of its files.
type published struct {
	url string
	// checksum is the suffix that is added to the file's URL to get the URL of
	// its checksum.
	checksum string
}

func (w Wish) published() (published, error) {
	if w.Version == "" {
		return published{}, fmt.Errorf("no version of %s is set: set it, or %s", w.Component, w.field())
	}
	switch w.Component {
	case Containerd:
		const form = "https://github.com/containerd/containerd/releases/download/v%s/containerd-%[1]s-windows-%s.tar.gz"
		return published{fmt.Sprintf(form, w.Version, w.Arch), ".sha256sum"}, nil
	case Crictl:
		const form = "https://github.com/kubernetes-sigs/cri-tools/releases/download/v%s/crictl-v%[1]s-windows-%s.tar.gz"
		return published{fmt.Sprintf(form, w.Version, w.Arch), ".sha256"}, nil
	case Kubelet, Kubeadm, Kubectl, LogRunner, KubeProxy:
		const form = "https://dl.k8s.io/v%s/bin/windows/%s/%s.exe"
		return published{fmt.Sprintf(form, w.Version, w.Arch, w.Component), ".sha256"}, nil
	case E2ETest:
		const form = "https://dl.k8s.io/v%s/kubernetes-test-%s-%s.tar.gz"
		return published{fmt.Sprintf(form, w.Version, runtime.GOOS, w.Arch), ".sha256"}, nil
	}
	return published{}, fmt.Errorf("swdt does not know where %s is published: set %s", w.Component, w.field())
}

// programs returns the names of the component's files. Only the first file is
// required.
func (w Wish) programs() []string {
	if w.Component == Containerd {
		return []string{"containerd.exe", "containerd-shim-runhcs-v1.exe", "ctr.exe"}
	}
	if !w.forNode() && runtime.GOOS != "windows" {
		return []string{string(w.Component)}
	}
	return []string{string(w.Component) + ".exe"}
}

// forNode reports whether the component runs on a node, so that its programs are for Windows.
func (w Wish) forNode() bool { return w.Component != E2ETest }

// field returns the name that errors use for the field of Source.
func (w Wish) field() string {
	if w.Field == "" {
		return "its source"
	}
	return w.Field
}

// description names the wanted component for people.
func (w Wish) description() string {
	what := string(w.Component)
	if w.Version != "" {
		what += " " + w.Version
	}
	if w.Arch == "" {
		return what
	}
	if !w.forNode() {
		return what + " for " + runtime.GOOS + "/" + w.Arch
	}
	return what + " for windows/" + w.Arch
}
