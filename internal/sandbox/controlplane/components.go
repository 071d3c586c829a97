package controlplane

import "fmt"

// component is a program of the control plane. It has the arguments that kubeadm writes into the
// manifest of the program's static pod. Some arguments differ because the program binds to
// loopback.
type component struct {
	name string
	args []string
}

func programs() []string {
	return []string{"etcd", apiServer, controllerManager, scheduler, kubeadm}
}

const (
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
)

func (l layout) etcd(p *ports) component {
	url := fmt.Sprintf("https://127.0.0.1:%d", p.etcd)
	return component{"etcd", []string{
		"--name=control-plane",
		"--data-dir=" + l.file("etcd"),
		"--listen-client-urls=" + url,
		"--advertise-client-urls=" + url,
		"--socket-reuse-port=true",
		"--client-cert-auth=true",
		"--cert-file=" + l.certificate("etcd/server"),
		"--key-file=" + l.key("etcd/server"),
		"--trusted-ca-file=" + l.certificate("etcd/ca"),
		// etcd has no peers: any port will do, and no program needs to know it.
		"--listen-peer-urls=https://127.0.0.1:0",
		"--peer-client-cert-auth=true",
		"--peer-cert-file=" + l.certificate("etcd/peer"),
		"--peer-key-file=" + l.key("etcd/peer"),
		"--peer-trusted-ca-file=" + l.certificate("etcd/ca"),
		// The data is deleted in the end, so it need not survive a power cut.
		"--unsafe-no-fsync=true",
	}}
}

func (l layout) apiServer(p *ports, o Options) component {
	return component{apiServer, append(append(l.auditArgs(o.Audit), l.admissionArgs(o.PodSecurity)...),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.apiServer),
		"--permit-port-sharing=true",
		"--advertise-address="+advertised,
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--client-ca-file="+l.certificate("ca"),
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true",
		"--etcd-cafile="+l.certificate("etcd/ca"),
		"--etcd-certfile="+l.certificate("apiserver-etcd-client"),
		"--etcd-keyfile="+l.key("apiserver-etcd-client"),
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", p.etcd),
		"--kubelet-client-certificate="+l.certificate("apiserver-kubelet-client"),
		"--kubelet-client-key="+l.key("apiserver-kubelet-client"),
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
		"--proxy-client-cert-file="+l.certificate("front-proxy-client"),
		"--proxy-client-key-file="+l.key("front-proxy-client"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-client-ca-file="+l.certificate("front-proxy-ca"),
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+l.file("pki/sa.pub"),
		"--service-account-signing-key-file="+l.key("sa"),
		"--service-cluster-ip-range="+serviceSubnet,
		"--tls-cert-file="+l.certificate("apiserver"),
		"--tls-private-key-file="+l.key("apiserver"),
	)}
}

func (l layout) controllerManager(name string, p *ports) component {
	return component{controllerManager, append(l.clientArgs("controller-manager", p),
		"--allocate-node-cidrs=true",
		"--client-ca-file="+l.certificate("ca"),
		"--cluster-cidr="+podSubnet,
		"--cluster-name="+name,
		"--cluster-signing-cert-file="+l.certificate("ca"),
		"--cluster-signing-key-file="+l.key("ca"),
		// bootstrapsigner signs cluster-info for each bootstrap token, and tokencleaner deletes
		// expired tokens. Both are off by default.
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--requestheader-client-ca-file="+l.certificate("front-proxy-ca"),
		"--root-ca-file="+l.certificate("ca"),
		"--service-account-private-key-file="+l.key("sa"),
		"--service-cluster-ip-range="+serviceSubnet,
		"--use-service-account-credentials=true",
	)}
}

func (l layout) scheduler(p *ports) component {
	return component{scheduler, l.clientArgs("scheduler", p)}
}

// clientArgs returns the arguments of a program that is a client of the API server. The arguments
// override the server's address, since kubeadm puts the advertised address into the kubeconfig.
func (l layout) clientArgs(name string, p *ports) []string {
	return []string{
		"--kubeconfig=" + l.kubeconfig(name),
		"--master=" + l.server(p),
		// These programs need no port: their effects show whether they work.
		"--secure-port=0",
		"--leader-elect=true",
		// By default, a leader ends when the API server is away for 10 s. No kubelet would start it again.
		"--leader-elect-lease-duration=10m",
		"--leader-elect-renew-deadline=9m",
		// The default limits suit a cluster with other users. In this cluster they would delay
		// the start: each controller requests a service account before the first controller
		// starts.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}
