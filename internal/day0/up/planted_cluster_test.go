package up_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// mistakesOfKind are found while kind makes a cluster, or before.
func mistakesOfKind() []mistake {
	const image = "kindest/node:v1.36.3"
	named := "kind: {image: '" + image + "'}"
	has := func(w *world) { w.control, w.kind.Failing, w.kind.Images[image] = named, nil, "sha256:1" }
	missing := func(name string) func(*world) {
		return func(w *world) {
			w.control = "kind: {image: '" + name + "'}"
			w.kind.Failing = errors.New(`failed to pull image "` + name + `": manifest unknown`)
		}
	}
	const field = "cluster.yaml:5: spec.controlPlane.kind."
	return []mistake{
		{is: "no Docker, Podman or nerdctl", found: inRuntime,
			words:  []string{"no container runtime answers", "docker: it is not installed"},
			remedy: "start one of them, and check with `docker ps`", fake: "an empty PATH",
			plant: func(w *world) { w.openKind = w.runtimes(nil) },
			cure:  func(w *world) { w.openKind = w.runtimes(map[string]string{"docker": "exit 0"}) }},
		{is: "no right to use Docker's socket", found: inRuntime,
			words:  []string{"docker ps: exit status 1: permission denied at /var/run/docker.sock"},
			remedy: "with Docker, the members of the group docker may", fake: "a script named docker",
			plant: func(w *world) {
				w.openKind = w.runtimes(map[string]string{
					"docker": "echo 'permission denied at /var/run/docker.sock' >&2; exit 1"})
			},
			cure: func(w *world) { w.openKind = w.runtimes(map[string]string{"docker": "exit 0"}) }},
		{is: "the API server's port is in use", found: inCluster,
			words: []string{field + "apiServerPort: nothing can listen at port"}, remedy: "choose another port, or leave it out",
			plant: func(w *world) {
				busy, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					w.t.Fatal(err)
				}
				w.t.Cleanup(func() { _ = busy.Close() })
				_, port, _ := strings.Cut(busy.Addr().String(), ":")
				w.control = "kind: {apiServerPort: " + port + "}"
			}, cure: control("kind: {}")},
		{is: "the API server at an address of another machine", found: inCluster,
			words:  []string{field + "apiServerAddress: nothing can listen at 203.0.113.7"},
			remedy: "write an address of your machine",
			plant:  control("kind: {apiServerAddress: 203.0.113.7}"), cure: control("kind: {apiServerAddress: 127.0.0.1}")},
		{is: "the range of the pods overlaps a network of your machine", found: inCluster,
			words:  []string{clusterOf + "podSubnet: ", "a network of your machine"},
			remedy: "choose another range",
			plant:  func(w *world) { w.network = "plugin: none, podSubnet: " + ownNetwork(w).String() },
			cure:   network("plugin: none, podSubnet: 10.200.0.0/16")},
		{is: "the range of the Services overlaps a network of your machine", found: inCluster,
			words:  []string{clusterOf + "serviceSubnet: ", "a network of your machine"},
			remedy: "choose another range",
			plant:  func(w *world) { w.network = "plugin: none, serviceSubnet: " + ownNetwork(w).String() },
			cure:   network("plugin: none, serviceSubnet: 10.201.0.0/16")},
		{is: "an image to load that the container runtime does not have", found: inCluster,
			words: []string{field + "images[0]: no such image: app:v1"}, remedy: "or remove the image from the list",
			plant: control("kind: {images: [app:v1]}"), cure: control("kind: {}")},
		{is: "a node image that does not exist", found: inCluster,
			words:  []string{field + "image: the container runtime has no image kindest/node:v9.9.9", "manifest unknown"},
			remedy: "correct the name and the digest, or load the image into the container runtime",
			fake:   "a simulated kind", plant: missing("kindest/node:v9.9.9"), cure: has},
		{is: "a node image with another digest", found: inCluster,
			words:  []string{field + "image: the container runtime has no image " + image + "@sha256:0a0a"},
			remedy: "correct the name and the digest, or load the image into the container runtime",
			fake:   "a simulated kind", plant: missing(image + "@sha256:0a0a"), cure: has},
		{is: "a node image for another processor", found: inCluster,
			words:  []string{field + "image: " + image + " is an image for arm64, but your container runtime runs on amd64"},
			remedy: "name an image for amd64, or pull it again with --platform linux/amd64", fake: "a simulated kind",
			plant: func(w *world) {
				w.control, w.kind.Images[image] = named, "sha256:1"
				w.kind.Architectures = map[string]string{image: "arm64"}
			},
			cure: func(w *world) { w.kind.Architectures = nil }},
		{is: "old control groups (cgroups v1), with which the kubelet does not start", found: inCluster,
			words:  []string{"your machine has version 1 of control groups"},
			remedy: "boot your machine with the kernel parameter systemd.unified_cgroup_hierarchy=1",
			fake:   "a simulated kind",
			plant: func(w *world) {
				has(w)
				w.kind.Failing, w.kind.Info.OldCgroups = errors.New("kubeadm init: the kubelet is not running"), true
			},
			cure: func(w *world) { w.kind.Failing, w.kind.Info.OldCgroups = nil, false }},
		{is: "a registry mirror that does not answer", found: inCluster, warns: true,
			words: []string{field + "registryMirrors[0].endpoints[0]: the mirror http://172.18.0.1:5000 of docker.io does not " +
				"answer dev-control-plane: nothing listens there"},
			remedy: "start the mirror, or correct its URL", fake: "a simulated kind",
			plant: func(w *world) {
				w.control, w.kind.Dead = mirror("http://172.18.0.1:5000"), []string{"http://172.18.0.1:5000"}
			},
			cure: func(w *world) { w.kind.Dead = nil }},
		{is: "a cluster of another tool has the name", found: inCluster,
			words:  []string{"kind has a cluster dev already, which swdt has not made"},
			remedy: "delete it with `kind delete cluster --name dev`", fake: "a simulated kind",
			plant: func(w *world) {
				if err := w.kind.Create("dev"); err != nil {
					w.t.Fatal(err)
				}
			},
			cure: func(w *world) {
				if err := w.kind.Remove("dev"); err != nil {
					w.t.Fatal(err)
				}
			}},
		{is: "the cluster was made from other settings", found: inCluster,
			words: []string{"cluster dev was made from other settings, and kind cannot change a cluster",
				field + "workers"},
			remedy: "or undo the changes of the file", fake: "a simulated kind",
			plant: func(w *world) {
				if r := w.up(); r.err != nil {
					w.t.Fatal(r.err)
				}
				w.control = "kind: {workers: 2}"
			}, cure: control("kind: {}")},
	}
}

// mistakesOfExisting are mistakes of the access to a cluster that another tool has made.
func mistakesOfExisting() []mistake {
	const field = "cluster.yaml:5"
	use := func(w *world) { w.control = existing }
	return []mistake{
		{is: "the kubeconfig does not exist", found: inCluster,
			words:  []string{field + ": spec.controlPlane.existing: selects no cluster in ", "there is no such file"},
			remedy: "write the path of the cluster's kubeconfig",
			plant:  control("existing: {kubeconfig: nowhere.conf}"), cure: use},
		{is: "the kubeconfig has no such context", found: inCluster,
			words:  []string{field + ": spec.controlPlane.existing: selects no cluster in ", `there is no context "prod"; the contexts are simulated`},
			remedy: "the name of a context in it",
			plant:  control("existing: {kubeconfig: admin.conf, context: prod}"), cure: use},
		{is: "the kubeconfig of another cluster at the same address", found: inCluster,
			words:  []string{"(spec.controlPlane.existing in ", field, "certificate signed by unknown authority"},
			remedy: "is the kubeconfig of this cluster, or of an earlier one at the same address?",
			plant: func(w *world) {
				earlier, err := apiserver.Start(apiserver.Options{})
				if err != nil {
					w.t.Fatal(err)
				}
				w.t.Cleanup(earlier.Close)
				text, err := earlier.Kubeconfig(w.server.Server())
				if err != nil {
					w.t.Fatal(err)
				}
				w.write("earlier.conf", string(text))
				w.control = "existing: {kubeconfig: earlier.conf}"
			}, cure: use},
		{is: "the client certificate of the kubeconfig has expired", found: inCluster,
			words:  []string{"(spec.controlPlane.existing in ", field, "the client certificate in the kubeconfig for "},
			remedy: "get a new kubeconfig of an administrator",
			plant: func(w *world) {
				certificate, key := expired(w)
				w.user("client-certificate-data: " + certificate + ", client-key-data: " + key)
			}, cure: use},
		{is: "the API server rejects the token of the kubeconfig", found: inCluster,
			words:  []string{"(spec.controlPlane.existing in ", field, "does not accept the kubeconfig's credentials"},
			remedy: "have they expired, or is it another cluster's kubeconfig?",
			plant:  func(w *world) { w.user("token: abcdef.0123456789abcdef") }, cure: use},
		{is: "the kubeconfig's user has no rights", found: inCluster,
			words:  []string{"(spec.controlPlane.existing in ", field, "the kubeconfig's user may not list nodes"},
			remedy: "use an administrator's kubeconfig",
			plant:  func(w *world) { w.user("") }, cure: use},
		{is: "the API server does not answer", found: inCluster,
			words:  []string{"(spec.controlPlane.existing in ", field, "no usable answer from the API server https://127.0.0.1:1"},
			remedy: "is the cluster running, and the address in the kubeconfig right?",
			plant: func(w *world) {
				w.kubeconfig("closed.conf", "https://127.0.0.1:1")
				w.control = "existing: {kubeconfig: closed.conf}"
			}, cure: use},
		{is: "the API server's certificate has another name than the kubeconfig", found: inCluster,
			words:  []string{"(spec.controlPlane.existing in ", field, "certificate is valid for "},
			remedy: "use an address that is in the API server's certificate, or set tls-server-name in the kubeconfig",
			plant: func(w *world) {
				text, err := w.server.Kubeconfig("")
				if err != nil {
					w.t.Fatal(err)
				}
				const server = "    server: "
				w.write("other.conf", strings.Replace(string(text), server, "    tls-server-name: other.example\n"+server, 1))
				w.control = "existing: {kubeconfig: other.conf}"
			}, cure: use},
		{is: "another range of pods than the existing cluster's", found: inCluster,
			words:  []string{clusterOf + "podSubnet: is 10.9.0.0/16, but the addresses of the existing cluster's pods are"},
			remedy: "leave the field out: swdt reads these addresses from the cluster",
			plant: func(w *world) {
				use(w)
				w.network = "plugin: none, podSubnet: 10.9.0.0/16"
			}, cure: network("plugin: none")},
	}
}

// user writes a kubeconfig for the API server with these fields of the user, and uses it.
func (w *world) user(fields string) {
	w.write("user.conf", "apiVersion: v1\nkind: Config\ncurrent-context: x\n"+
		"clusters: [{name: x, cluster: {server: '"+w.server.Server()+"', certificate-authority-data: "+
		base64.StdEncoding.EncodeToString(w.server.CA())+"}}]\n"+
		"contexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {"+fields+"}}]\n")
	w.control = "existing: {kubeconfig: user.conf}"
}

// expired returns a client certificate that expired yesterday, and its key, in the form in which a
// kubeconfig has them.
func expired(w *world) (certificate, key string) {
	w.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "admin"},
		NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(0, 0, -1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		w.t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		w.t.Fatal(err)
	}
	text := func(kind string, bytes []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return text("CERTIFICATE", der), text("EC PRIVATE KEY", secret)
}
