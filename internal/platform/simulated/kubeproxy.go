package simulated

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// kubeProxyHealth is the address at which a kube-proxy serves /healthz.
const kubeProxyHealth = "127.0.0.1:10256"

// checkKubeProxy returns the error with which a kube-proxy ends at once: that of k8s.io/kubernetes v1.36.3,
// cmd/kube-proxy/app/server.go for a kubeconfig that does not exist, and that of pkg/proxy/winkernel/proxier.go for an
// overlay network without a source address. A kube-proxy without these flags, as the presets have it, is not checked.
func (c component) checkKubeProxy() error {
	if path := windowsPath(c.flag("--kubeconfig")); path != "" {
		if _, err := c.p.p.m.ReadFile(path); err != nil {
			//lint:ignore ST1005 as the real one says it
			return fmt.Errorf("failed complete: stat %s: The system cannot find the file specified.", path)
		}
	}
	if kind, found := c.p.p.m.networkType(c.flag("--network-name")); found && strings.EqualFold(kind, "overlay") &&
		c.flag("--source-vip") == "" {
		return errors.New("source-vip flag not set")
	}
	return nil
}

// serveKubeProxy serves /healthz if the flags name a network. The real kube-proxy waits for that network before it
// listens (getNetworkInfo in pkg/proxy/winkernel/proxier.go); this one answers 503 meanwhile.
func (c component) serveKubeProxy() (func(), error) {
	network, m := c.flag("--network-name"), c.p.p.m
	if network == "" {
		return func() {}, nil
	}
	err := c.p.HandleHTTP(kubeProxyHealth, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, found := m.networkType(network)
		switch {
		case r.URL.Path != "/healthz":
			w.WriteHeader(http.StatusNotFound)
		case c.fault == Unhealthy || !found:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	if err != nil {
		return nil, err
	}
	return func() { c.p.p.stopListening(kubeProxyHealth) }, nil
}

// networkType returns the type of the network with this name that the Host Network Service has.
func (m *Machine) networkType(name string) (kind string, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.objectsIn(HNSFolder + `\networks`) {
		var network struct{ Name, Type string }
		if json.Unmarshal(o.document, &network) == nil && network.Name == name {
			return network.Type, true
		}
	}
	return "", false
}
