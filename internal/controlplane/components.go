package controlplane

import "fmt"

// component is a program of the control plane.
type component struct {
	name string
	args []string
}

const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
)

func componentNames() []string { return []string{etcd, apiServer, controllerManager, scheduler} }

// components are the programs with their arguments: those that kubeadm writes into
// its static pods' manifests, but for what binding to loopback asks for.
func (l layout) components(name string, p *ports) []component {
	return []component{
		{etcd, l.etcdArgs(p)},
		{apiServer, l.apiServerArgs(p)},
		{controllerManager, l.controllerManagerArgs(name, p)},
		{scheduler, l.schedulerArgs(p)},
	}
}

func (l layout) etcdArgs(p *ports) []string {
	url := fmt.Sprintf("https://127.0.0.1:%d", p.etcd)
	return []string{
		"--name=control-plane",
		"--data-dir=" + l.file("etcd"),
		"--listen-client-urls=" + url,
		"--advertise-client-urls=" + url,
		"--socket-reuse-port=true",
		"--client-cert-auth=true",
		"--cert-file=" + l.certificate("etcd/server"),
		"--key-file=" + l.key("etcd/server"),
		"--trusted-ca-file=" + l.certificate("etcd/ca"),
		// It has no peers: any port will do, and nobody is told which.
		"--listen-peer-urls=https://127.0.0.1:0",
		"--peer-client-cert-auth=true",
		"--peer-cert-file=" + l.certificate("etcd/peer"),
		"--peer-key-file=" + l.key("etcd/peer"),
		"--peer-trusted-ca-file=" + l.certificate("etcd/ca"),
		// All of it is thrown away in the end.
		"--unsafe-no-fsync=true",
	}
}

func (l layout) apiServerArgs(p *ports) []string {
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.apiServer),
		"--permit-port-sharing=true",
		"--advertise-address=" + advertised,
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--client-ca-file=" + l.certificate("ca"),
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true",
		"--etcd-cafile=" + l.certificate("etcd/ca"),
		"--etcd-certfile=" + l.certificate("apiserver-etcd-client"),
		"--etcd-keyfile=" + l.key("apiserver-etcd-client"),
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", p.etcd),
		"--kubelet-client-certificate=" + l.certificate("apiserver-kubelet-client"),
		"--kubelet-client-key=" + l.key("apiserver-kubelet-client"),
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
		"--proxy-client-cert-file=" + l.certificate("front-proxy-client"),
		"--proxy-client-key-file=" + l.key("front-proxy-client"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-client-ca-file=" + l.certificate("front-proxy-ca"),
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.file("pki/sa.pub"),
		"--service-account-signing-key-file=" + l.key("sa"),
		"--service-cluster-ip-range=" + serviceSubnet,
		"--tls-cert-file=" + l.certificate("apiserver"),
		"--tls-private-key-file=" + l.key("apiserver"),
	}
}

func (l layout) controllerManagerArgs(name string, p *ports) []string {
	return append(l.clientArgs("controller-manager", p),
		"--allocate-node-cidrs=true",
		"--client-ca-file="+l.certificate("ca"),
		"--cluster-cidr="+podSubnet,
		"--cluster-name="+name,
		"--cluster-signing-cert-file="+l.certificate("ca"),
		"--cluster-signing-key-file="+l.key("ca"),
		// The latter two are off by default: they sign cluster-info for each
		// bootstrap token, and delete tokens that expired.
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--requestheader-client-ca-file="+l.certificate("front-proxy-ca"),
		"--root-ca-file="+l.certificate("ca"),
		"--service-account-private-key-file="+l.key("sa"),
		"--service-cluster-ip-range="+serviceSubnet,
		"--use-service-account-credentials=true",
	)
}

func (l layout) schedulerArgs(p *ports) []string { return l.clientArgs("scheduler", p) }

// clientArgs are of a program that talks to the API server. kubeadm points its
// kubeconfig at the advertised address.
func (l layout) clientArgs(name string, p *ports) []string {
	config := l.kubeconfig(name)
	return []string{
		"--kubeconfig=" + config,
		"--master=" + l.server(p),
		// They serve nothing: whether they work is seen by what they do.
		"--secure-port=0",
		"--leader-elect=true",
	}
}
