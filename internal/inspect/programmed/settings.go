package programmed

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Proxy is the kube-proxy of a node.
type Proxy struct {
	Runs    bool   `json:"runs"`
	Version string `json:"version"` // "" if unknown
	Network string `json:"network"` // the HNS network of its endpoints
	DSR     bool   `json:"dsr"`
	// Settled reports whether it has programmed all changes that it knows of; false if its metrics cannot be read.
	Settled bool `json:"settled"`
	// Configured reports whether kube-proxy served its settings itself. A repair needs that.
	Configured bool `json:"configured"`
	// Failures has the numbers of its failures by kind, from Kubernetes 1.37 on.
	Failures map[string]float64 `json:"failures"`
}

// proxy is a kube-proxy with all settings that decide what it programs.
type proxy struct {
	Proxy
	settings   kubeproxy.Settings
	hasMetrics bool
}

// proxy asks for the node's kube-proxy. Its own answer (configz) is the truth about its settings; without one, its command
// line is, if it names no configuration file.
func (l *looker) proxy(ctx context.Context) (p proxy, err error) {
	p.Failures = map[string]float64{}
	list, err := l.node.Processes.List(ctx, &agentv1.ListProcessesRequest{})
	if err != nil {
		return p, err
	}
	i := slices.IndexFunc(list.GetProcesses(), func(one *agentv1.Process) bool {
		return strings.EqualFold(strings.TrimSuffix(strings.ToLower(one.GetName()), ".exe"), "kube-proxy")
	})
	if i < 0 {
		return p, nil
	}
	process := list.GetProcesses()[i]
	p.Runs, p.settings = true, fromCommandLine(process.GetCommandLine())
	p.settings.Families = []corev1.IPFamily{corev1.IPv4Protocol}
	if err := errors.Join(l.askMetrics(ctx, &p), l.askConfiguration(ctx, &p)); err != nil {
		return p, err
	}
	if p.settings.Network == "" {
		if p.settings.Network, err = l.environment(ctx, process.GetPid(), "KUBE_NETWORK"); err != nil {
			return p, err
		}
	}
	if err := p.known(process.GetCommandLine()); err != nil {
		return p, err
	}
	if p.settings.Node == "" {
		p.settings.Node = l.name
	}
	p.Version, p.Network, p.DSR = p.settings.Version, p.settings.Network, p.settings.DSR
	return p, nil
}

// known returns an error if settings that decide what kube-proxy programs are unknown: a comparison would invent findings.
func (p proxy) known(commandLine string) error {
	const remedy = "set --metrics-url to the address at which kube-proxy serves /metrics and /configz on the node"
	switch {
	case !p.Configured && commandline.Flag(commandLine, "config") != "":
		return errors.New("read the settings of kube-proxy: it does not serve /configz, and they are in its configuration file; " + remedy)
	case p.settings.Network == "":
		return errors.New("read the settings of kube-proxy: the name of its HNS network is unknown; " + remedy)
	}
	return nil
}

func fromCommandLine(line string) kubeproxy.Settings {
	s := kubeproxy.Settings{Network: commandline.Flag(line, "network-name"), SourceVIP: commandline.Flag(line, "source-vip"),
		DSR: commandline.Switch(line, "enable-dsr"), RootEndpoint: commandline.Flag(line, "root-hnsendpoint-name"),
		ForwardHealthCheckVIP: commandline.Switch(line, "forward-healthcheck-vip")}
	if override := commandline.Flag(line, "hostname-override"); override != "" {
		s.Node = node.ObjectNameOf(override)
	}
	s.HealthzPort = portOf(commandline.Flag(line, "healthz-bind-address"))
	return s
}

// portOf returns the port of HOST:PORT, or that of kube-proxy's default address.
func portOf(address string) uint16 {
	const standard = 10256
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return standard
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return standard
	}
	return uint16(port)
}

// environment returns a variable of a process; "" if it is not set, or if the process has ended or is protected.
func (l *looker) environment(ctx context.Context, pid uint32, name string) (string, error) {
	reply, err := l.node.Processes.Environment(ctx, &agentv1.ProcessEnvironmentRequest{Pid: pid, Names: []string{name}})
	if errors.Is(err, fault.ErrNotExist) || errors.Is(err, fault.ErrPermission) || errors.Is(err, fault.ErrNotSupported) {
		return "", nil
	}
	for _, v := range reply.GetVariables() {
		if strings.EqualFold(v.GetName(), name) {
			return v.GetValue(), err
		}
	}
	return "", err
}

// get returns the answer of kube-proxy at a path; nil if there is none.
func (l *looker) get(ctx context.Context, path string) ([]byte, error) {
	at, err := url.Parse(l.MetricsURL)
	if err != nil {
		return nil, err
	}
	if path != "" {
		at.Path = path
	}
	reply, err := l.node.Network.HTTPGet(ctx, &agentv1.HTTPGetRequest{Url: at.String()})
	var lost *node.LostError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &lost):
		return nil, err
	case err != nil || reply.GetStatus() != http.StatusOK: // it serves none, or elsewhere
		return nil, nil
	}
	return reply.GetBody(), nil
}

// askMetrics reads the metrics. A family of which kube-proxy has metrics is one that it programs.
func (l *looker) askMetrics(ctx context.Context, p *proxy) error {
	body, err := l.get(ctx, "")
	if err != nil || body == nil {
		return err
	}
	m, ok := kubeproxy.ParseMetrics(body)
	if !ok {
		return nil
	}
	p.hasMetrics, p.settings.Version, p.Failures = true, m.Version, m.Failures
	_, _, p.Settled = m.Settled()
	var families []corev1.IPFamily
	for _, f := range []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol} {
		if m.Families[string(f)] != nil {
			families = append(families, f)
		}
	}
	if families != nil {
		p.settings.Families = families
	}
	return nil
}

// configuration is the answer of kube-proxy about its configuration. Its fields are those of KubeProxyConfiguration v1alpha1;
// before Kubernetes 1.35 they begin with capital letters, which encoding/json does not distinguish.
type configuration struct {
	Config struct {
		HostnameOverride   string `json:"hostnameOverride"`
		HealthzBindAddress string `json:"healthzBindAddress"`
		Winkernel          *struct {
			NetworkName           string `json:"networkName"`
			SourceVIP             string `json:"sourceVip"`
			EnableDSR             bool   `json:"enableDSR"`
			RootHNSEndpointName   string `json:"rootHnsEndpointName"`
			ForwardHealthCheckVIP bool   `json:"forwardHealthCheckVip"`
		} `json:"winkernel"`
	} `json:"kubeproxy.config.k8s.io"`
}

func (l *looker) askConfiguration(ctx context.Context, p *proxy) error {
	body, err := l.get(ctx, "/configz")
	var c configuration
	if err != nil || json.Unmarshal(body, &c) != nil || c.Config.Winkernel == nil {
		return err
	}
	p.Configured = true
	w, s := c.Config.Winkernel, &p.settings
	s.Network, s.SourceVIP, s.DSR = w.NetworkName, w.SourceVIP, w.EnableDSR
	s.RootEndpoint, s.ForwardHealthCheckVIP = w.RootHNSEndpointName, w.ForwardHealthCheckVIP
	s.HealthzPort = portOf(c.Config.HealthzBindAddress)
	if c.Config.HostnameOverride != "" {
		s.Node = node.ObjectNameOf(c.Config.HostnameOverride)
	}
	return nil
}
