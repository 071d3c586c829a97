package cluster

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Antrea has the DaemonSets by which Antrea was detected, and the settings of its agents on Windows.
type Antrea struct {
	WindowsDaemonSets []string `json:"windowsDaemonSets,omitempty"`
	// Configured reports whether the ConfigMap of the agents on Windows was found. The fields below are
	// empty if not.
	Configured bool   `json:"configured,omitempty"`
	APIServer  string `json:"apiServer,omitempty"` // kubeAPIServerOverride
	ProxyAll   bool   `json:"proxyAll,omitempty"`  // Antrea replaces kube-proxy on Windows nodes
	Tunnel     string `json:"tunnel,omitempty"`    // the type of the tunnels on Windows nodes
	// LinuxTunnel and LinuxEncryption are settings of the agents on Linux; "" if they are not known.
	LinuxTunnel     string `json:"linuxTunnel,omitempty"`
	LinuxEncryption string `json:"linuxEncryption,omitempty"`
}

// antrea reads the settings of Antrea's agents that decide whether pods on Windows have a network.
func (c *Cluster) antrea(ctx context.Context, sets []appsv1.DaemonSet) (*Antrea, error) {
	a := &Antrea{WindowsDaemonSets: onWindows(sets, "antrea-agent")}
	if len(a.WindowsDaemonSets) == 0 {
		return a, nil
	}
	const namespace = metav1.NamespaceSystem
	windows, exists, err := c.antreaSettings(ctx, namespace, "antrea-windows-config")
	if err != nil || !exists {
		return a, err
	}
	a.Configured, a.APIServer, a.ProxyAll, a.Tunnel = true, windows.APIServer, windows.Proxy.All, windows.TunnelType
	linux, exists, err := c.antreaSettings(ctx, namespace, "antrea-config")
	if exists && err == nil {
		a.LinuxTunnel, a.LinuxEncryption = linux.TunnelType, linux.Encryption
	}
	return a, err
}

// AntreaSettings are the settings of an agent of Antrea that decide whether Windows nodes work.
type AntreaSettings struct {
	APIServer  string `json:"kubeAPIServerOverride"` // a host, host:port or URL; "": that of Service kubernetes
	TunnelType string `json:"tunnelType"`
	TunnelPort int    `json:"tunnelPort"`            // 0: the port of the type
	Encryption string `json:"trafficEncryptionMode"` // on Linux nodes
	Proxy      struct {
		Enable *bool `json:"enable"` // nil: enabled
		All    bool  `json:"proxyAll"`
	} `json:"antreaProxy"`
}

// ReadAntreaSettings reads the content of antrea-agent.conf. Settings that it leaves out have Antrea's
// defaults.
func ReadAntreaSettings(conf string) (s AntreaSettings, err error) {
	if err := yaml.Unmarshal([]byte(conf), &s); err != nil {
		return s, err
	}
	s.TunnelType, s.Encryption = cmp.Or(s.TunnelType, "geneve"), cmp.Or(s.Encryption, "none")
	return s, nil
}

func (c *Cluster) antreaSettings(ctx context.Context, namespace, name string) (s AntreaSettings, exists bool,
	err error) {
	data, exists, err := c.configMap(ctx, namespace, name)
	if err != nil || !exists {
		return s, exists, err
	}
	if s, err = ReadAntreaSettings(data["antrea-agent.conf"]); err != nil {
		return s, true, fmt.Errorf("read antrea-agent.conf in ConfigMap %s/%s: %w", namespace, name, err)
	}
	return s, true, nil
}
