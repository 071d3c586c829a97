package preflight

import (
	"slices"
	"strings"
)

// clientCertificate is what kubelet got from a cluster.
const clientCertificate = `C:\var\lib\kubelet\pki\kubelet-client-current.pem`

// leftovers are the files that say that the machine is a node already. kubeadm
// refuses to join where one of the first three is there.
func leftovers() []string {
	return []string{
		`C:\etc\kubernetes\kubelet.conf`, `C:\etc\kubernetes\bootstrap-kubelet.conf`, `C:\etc\kubernetes\pki\ca.crt`,
		`C:\var\lib\kubelet\config.yaml`, `C:\var\lib\kubelet\kubeadm-flags.env`, `C:\var\lib\kubelet\instance-config.yaml`,
		clientCertificate,
	}
}

func needFiles(f *facts) error { return f.node.files.err }

func lookAtLeftovers(f *facts) []Problem {
	if f.own.Joined {
		return nil
	}
	foreign := slices.DeleteFunc(slices.Clone(f.node.files.value), func(path string) bool {
		return slices.ContainsFunc(f.own.Files, func(own string) bool { return clean(own) == clean(path) })
	})
	if len(foreign) == 0 {
		return nil
	}
	p := Problem{
		Severity: Error, What: "the machine is, or was, a node of a cluster that swdt has not joined it to", Evidence: strings.Join(foreign, ", "),
		Remedy: "if it is not needed any more, run kubeadm reset on the machine and remove these files",
	}
	if slices.Equal(foreign, []string{clientCertificate}) {
		p.Severity, p.What = Warning, "there is a client certificate of an earlier kubelet"
	}
	return []Problem{p}
}
