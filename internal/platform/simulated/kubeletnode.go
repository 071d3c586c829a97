package simulated

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/cri"
)

const (
	kubeletPKI = `C:\var\lib\kubelet\pki`
	// kubeletTick is the interval between checks of the runtime. kubeletRenewal is the interval
	// between renewals of the lease: 10 s in a real kubelet, but shorter here because tests should
	// not wait that long.
	kubeletTick    = 50 * time.Millisecond
	kubeletRenewal = time.Second
)

// kubeletNode is a kubelet's part in its cluster: TLS bootstrap, the Node and its lease. It runs
// pods only as far as the installer of a pod network needs.
//
// Its requests and the fields of the Node are those of kubernetes v1.36.3: pkg/kubelet/certificate/bootstrap/bootstrap.go
// and k8s.io/client-go's util/certificate (the files), pkg/kubelet/kubelet_node_status.go (registration),
// pkg/kubelet/nodestatus/setters.go (conditions), pkg/kubelet/runtime.go and kubelet.go, updateRuntimeUp (why it is not
// ready), pkg/kubelet/winstats (where Windows has the node's identity), and k8s.io/component-helpers' apimachinery/lease.
type kubeletNode struct {
	c          component
	m          *Machine
	name       string
	kubeconfig string // path
	client     *apiClient

	registered bool
	renewed    time.Time
	lastStatus string // the state that the last written status reported
	statusAt   time.Time
}

// run takes part in the cluster until ctx ends. It logs failures and retries.
func (k *kubeletNode) run(ctx context.Context, credentials kubeconfig) {
	tick := time.NewTicker(kubeletTick)
	defer tick.Stop()
	failed := ""
	for {
		err := k.step(ctx, credentials)
		if ctx.Err() != nil {
			break
		}
		if err != nil && err.Error() != failed {
			failed = err.Error()
			k.c.log("E", "Unable to take part in the cluster", "err", failed, "node", k.name)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	if k.client != nil {
		k.client.close()
	}
}

// step performs the next action.
func (k *kubeletNode) step(ctx context.Context, credentials kubeconfig) error {
	if k.client == nil {
		return k.connect(ctx, credentials)
	}
	if !k.registered {
		if err := k.register(ctx); err != nil {
			return fmt.Errorf("register the node: %w", err)
		}
		k.registered = true
		k.c.log("I", "Successfully registered node", "node", k.name)
	}
	now := time.Now()
	if now.Sub(k.renewed) >= kubeletRenewal {
		if err := k.renew(ctx, now); err != nil {
			return fmt.Errorf("renew the lease: %w", err)
		}
		if err := k.runPods(ctx); err != nil {
			return fmt.Errorf("list the pods: %w", err)
		}
		k.renewed = now
	}
	return k.writeStatus(ctx, now)
}

// connect makes the client of the node's own user. If the kubelet has no certificate yet, connect
// first performs the TLS bootstrap.
func (k *kubeletNode) connect(ctx context.Context, credentials kubeconfig) error {
	if credentials.certificate == "" {
		client := k.c.p.newAPIClient(credentials.server, credentials.ca, credentials.token)
		defer client.close()
		bundle, err := k.bootstrap(ctx, client)
		if err != nil {
			return fmt.Errorf("bootstrap: %w", err)
		}
		if credentials, err = k.keep(credentials, bundle); err != nil {
			return err
		}
	}
	bundle, err := k.m.ReadFile(credentials.certificate)
	if err != nil {
		return fmt.Errorf("read the client certificate: %w", err)
	}
	certificate, err := tls.X509KeyPair(bundle, bundle)
	if err != nil {
		return fmt.Errorf("read the client certificate: %w", err)
	}
	k.client = k.c.p.newAPIClient(credentials.server, credentials.ca, "", certificate)
	return nil
}

// bootstrap requests a signed certificate from the cluster, and returns it with
// its key.
func (k *kubeletNode) bootstrap(ctx context.Context, client *apiClient) ([]byte, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	subject := pkix.Name{CommonName: "system:node:" + k.name, Organization: []string{"system:nodes"}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, private)
	if err != nil {
		return nil, err
	}
	var request struct {
		Metadata struct{ Name string }
		Status   struct{ Certificate []byte }
	}
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	err = client.do(ctx, http.MethodPost, path, jsonType, map[string]any{
		"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
		"metadata": map[string]any{"generateName": "node-csr-"},
		"spec": map[string]any{
			"request":    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			"signerName": "kubernetes.io/kube-apiserver-client-kubelet",
			"usages":     []any{"digital signature", "client auth"},
		},
	}, &request)
	for err == nil && len(request.Status.Certificate) == 0 {
		if err = wait.For(ctx, kubeletTick); err == nil {
			err = client.get(ctx, path+"/"+request.Metadata.Name, &request)
		}
	}
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, err
	}
	return append(request.Status.Certificate,
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})...), nil
}

// keep writes the certificate and a kubeconfig that refers to it. kubeadm waits for that
// kubeconfig.
func (k *kubeletNode) keep(credentials kubeconfig, bundle []byte) (kubeconfig, error) {
	folder := kubeletPKI
	if flag := k.c.flag("--cert-dir"); flag != "" {
		k.m.mu.Lock()
		folder = windowsPath(k.m.expand(flag))
		k.m.mu.Unlock()
	}
	credentials.certificate, credentials.token, credentials.user = folder+`\kubelet-client-current.pem`,
		"", "default-auth"
	text, err := credentials.format()
	if err != nil {
		return credentials, err
	}
	k.write(folder+`\kubelet-client-`+time.Now().Format("2006-01-02-15-04-05")+".pem", bundle)
	k.write(credentials.certificate, bundle)
	k.write(k.kubeconfig, text)
	return credentials, nil
}

// write writes a file without an operation, as component.log does: tests enumerate swdt's
// operations, not a kubelet's.
func (k *kubeletNode) write(path string, data []byte) {
	k.m.mu.Lock()
	defer k.m.mu.Unlock()
	if !k.c.p.p.gone {
		k.m.putFile(path, data)
	}
}

func (k *kubeletNode) path() string { return "/api/v1/nodes/" + k.name }

// register makes the Node. If the Node exists already, register changes its usual labels only: not those of
// --node-labels, and no taints (tryRegisterWithAPIServer and updateDefaultLabels).
func (k *kubeletNode) register(ctx context.Context) error {
	labels := parseLabels(k.c.flag("--node-labels"))
	usual := map[string]any{}
	for name, value := range map[string]string{
		"kubernetes.io/hostname": k.name, "kubernetes.io/os": "windows", "kubernetes.io/arch": k.m.options.Architecture,
		"beta.kubernetes.io/os": "windows", "beta.kubernetes.io/arch": k.m.options.Architecture,
		"node.kubernetes.io/windows-build": "10.0.20348",
	} {
		labels[name], usual[name] = value, value
	}
	metadata := map[string]any{"name": k.name, "labels": labels}
	node := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": map[string]any{}}
	if taints := parseTaints(k.c.flag("--register-with-taints")); len(taints) > 0 {
		node["spec"] = map[string]any{"taints": taints}
	}
	err := k.client.do(ctx, http.MethodPost, "/api/v1/nodes", jsonType, node, nil)
	if isStatus(err, http.StatusConflict) {
		err = k.client.do(ctx, http.MethodPatch, k.path(), strategicPatchType,
			map[string]any{"metadata": map[string]any{"labels": usual}}, nil)
	}
	return err
}

// renew renews the node's lease, or creates it.
func (k *kubeletNode) renew(ctx context.Context, now time.Time) error {
	const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	spec := map[string]any{
		"holderIdentity": k.name, "leaseDurationSeconds": 40,
		"renewTime": now.UTC().Format("2006-01-02T15:04:05.000000Z07:00"),
	}
	err := k.client.do(ctx, http.MethodPatch, leases+"/"+k.name, mergePatchType, map[string]any{"spec": spec}, nil)
	if !isStatus(err, http.StatusNotFound) {
		return err
	}
	var node struct{ Metadata struct{ UID string } }
	if err := k.client.get(ctx, k.path(), &node); err != nil {
		return err
	}
	owner := map[string]any{"apiVersion": "v1", "kind": "Node", "name": k.name, "uid": node.Metadata.UID}
	return k.client.do(ctx, http.MethodPost, leases, jsonType, map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec,
		"metadata": map[string]any{"name": k.name, "ownerReferences": []any{owner}},
	}, nil)
}

// writeStatus writes the node's status if it has changed. If it has not, writeStatus writes it
// every five kubeletRenewals.
func (k *kubeletNode) writeStatus(ctx context.Context, now time.Time) error {
	runtime, why := k.runtime(ctx)
	state := runtime.RuntimeVersion + why
	if state == k.lastStatus && now.Sub(k.statusAt) < 5*kubeletRenewal {
		return nil
	}
	ready := map[string]any{"type": "Ready", "status": "True", "reason": "KubeletReady",
		"message": "kubelet is posting ready status"}
	if why != "" {
		ready = map[string]any{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": why}
	}
	conditions := []any{}
	for _, one := range [][3]string{
		{"MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
		{"DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
		{"PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
	} {
		conditions = append(conditions, map[string]any{"type": one[0], "status": "False", "reason": one[1], "message": one[2]})
	}
	conditions = append(conditions, ready)
	for _, condition := range conditions {
		fields := condition.(map[string]any)
		fields["lastHeartbeatTime"] = now.UTC().Format(time.RFC3339)
		if state != k.lastStatus {
			fields["lastTransitionTime"] = fields["lastHeartbeatTime"]
		}
	}
	facts, err := k.c.p.Platform.Machine.Facts(ctx)
	if err != nil {
		return err
	}
	hardware, err := k.c.p.Platform.Registry.Get(hardwareKey, "LastConfig")
	if err != nil {
		return err
	}
	capacity := map[string]any{"cpu": fmt.Sprint(facts.CPUs), "memory": fmt.Sprintf("%dKi", facts.Memory/1024),
		"pods": "110", "ephemeral-storage": "66000000Ki"}
	status := map[string]any{
		"conditions": conditions, "capacity": capacity, "allocatable": capacity,
		"nodeInfo": map[string]any{
			"operatingSystem": "windows", "architecture": facts.Architecture, "osImage": facts.Product,
			"kernelVersion":  "10.0." + facts.Build,
			"kubeletVersion": k.c.version, "kubeProxyVersion": k.c.version, "machineID": facts.Hostname,
			"bootID":     facts.BootID,
			"systemUUID": strings.Trim(hardware.String, "{}"), "containerRuntimeVersion": "containerd://" +
				strings.TrimPrefix(runtime.RuntimeVersion, "v"),
		},
		"daemonEndpoints": map[string]any{"kubeletEndpoint": map[string]any{"Port": 10250}},
	}
	if addresses, err := k.addresses(); err != nil {
		k.c.log("E", "Failed to set some node status fields", "err", err.Error(), "node", k.name)
	} else {
		var all []any
		for _, address := range addresses {
			all = append(all, map[string]any{"type": "InternalIP", "address": address.String()})
		}
		status["addresses"] = append(all, map[string]any{"type": "Hostname", "address": k.name})
	}
	if err := k.client.do(ctx, http.MethodPatch, k.path()+"/status", strategicPatchType,
		map[string]any{"status": status}, nil); err != nil {
		return fmt.Errorf("write the node's status: %w", err)
	}
	k.lastStatus, k.statusAt = state, now
	return nil
}

// runtime queries the container runtime. The result `why` is empty if the runtime is ready.
func (k *kubeletNode) runtime(ctx context.Context) (version cri.VersionInfo, why string) {
	dial := func(ctx context.Context) (net.Conn, error) {
		return networkView{k.c.p.p}.dial(ctx, k.c.runtimePipe())
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	version, err := cri.Version(ctx, dial)
	if err != nil {
		return version, "[container runtime is down, PLEG is not healthy: " + err.Error() + "]"
	}
	reply, err := cri.Status(ctx, dial, false)
	if err != nil {
		return version, "container runtime status check may not have completed yet: " + err.Error()
	}
	var runtime runtimev1.StatusResponse
	if err := proto.Unmarshal(reply, &runtime); err != nil {
		return version, "container runtime status check may not have completed yet: " + err.Error()
	}
	for _, condition := range runtime.GetStatus().GetConditions() {
		about := map[string]string{runtimev1.RuntimeReady: "container runtime not ready",
			runtimev1.NetworkReady: "container runtime network not ready"}[condition.GetType()] // kubelet knows no others
		if about != "" && !condition.GetStatus() {
			return version, fmt.Sprintf("%s: %s=false reason:%s message:%s", about, condition.GetType(),
				condition.GetReason(), condition.GetMessage())
		}
	}
	return version, ""
}

// podNetworkLabel marks a pod with a container that installs the pod network on its node. The
// label's value is the name of the network configuration file that the container writes on the
// node.
const podNetworkLabel = "simulated.swdt.dev/installs"

// runPods reports the pods that the cluster has bound to the node as running. For a pod that
// installs the pod network, it also writes the network's configuration and plugin.
func (k *kubeletNode) runPods(ctx context.Context) error {
	var pods struct {
		Items []struct {
			Metadata struct {
				Name, Namespace string
				Labels          map[string]string
			}
			Status struct{ Phase string }
		}
	}
	if err := k.client.get(ctx, "/api/v1/pods?fieldSelector=spec.nodeName%3D"+k.name, &pods); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if file := pod.Metadata.Labels[podNetworkLabel]; file != "" {
			if path := `C:\etc\cni\net.d\` + file; !k.exists(path) {
				k.write(path, []byte(`{"cniVersion":"1.0.0","name":"simulated","plugins":[{"type":"simulated"}]}`+"\n"))
				k.write(`C:\opt\cni\bin\simulated.exe`, Binary(BinarySpec{Name: "simulated", Version: "v1.0.0"}))
			}
		}
		if slices.Contains([]string{"Running", "Succeeded", "Failed"}, pod.Status.Phase) {
			continue
		}
		path := "/api/v1/namespaces/" + pod.Metadata.Namespace + "/pods/" + pod.Metadata.Name + "/status"
		status := map[string]any{"phase": "Running",
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
		if addresses, err := k.addresses(); err == nil && len(addresses) > 0 {
			status["hostIP"] = addresses[0].String()
		}
		err := k.client.do(ctx, http.MethodPatch, path, strategicPatchType, map[string]any{"status": status}, nil)
		if err != nil && !isStatus(err, http.StatusNotFound) {
			return err
		}
	}
	return nil
}

func (k *kubeletNode) exists(path string) bool {
	_, err := platform.Files(filesView{k.c.p.p}).Stat(path)
	return err == nil
}
