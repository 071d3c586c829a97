package doctor

import (
	"context"
	"errors"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// proxy reads the proxies in the environments of the machine and of services, without their user
// names and passwords. A service's own environment is added to the machine's.
func (g *gatherer) proxy(ctx context.Context) error {
	reply, err := g.Node.Settings.GetEnvironment(ctx, &agentv1.GetEnvironmentRequest{})
	var proxy Proxy
	for _, v := range reply.GetVariables() {
		proxy.set(v.GetName(), v.GetValue())
	}
	for _, name := range servicesWithProxy() {
		value, getErr := g.Node.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: servicesKey + name, Name: "Environment"})
		if getErr != nil && !errors.Is(getErr, fault.ErrNotExist) {
			err = errors.Join(err, getErr)
		}
		own, sets := proxy, false
		own.Services = nil
		for _, pair := range append(value.GetStrings(), value.GetString_()) {
			variable, text, _ := strings.Cut(pair, "=")
			sets = own.set(variable, text) || sets
		}
		if sets {
			if proxy.Services == nil {
				proxy.Services = map[string]Proxy{}
			}
			proxy.Services[name] = own
		}
	}
	running, runningErr := g.runningProxies(ctx)
	proxy.Running, err = running, errors.Join(err, runningErr)
	g.facts.Proxy = factOf(proxy, err)
	return err
}

// servicesWithProxy returns the services that connect to registries or to the API server.
func servicesWithProxy() []string { return []string{"containerd", "kubelet", "kube-proxy"} }

// runningProxies returns the proxies that the processes of the running services were started with.
func (g *gatherer) runningProxies(ctx context.Context) (map[string]Proxy, error) {
	running := map[string]Proxy{}
	for _, name := range servicesWithProxy() {
		service := g.facts.service(name)
		if !service.Running() || service.PID == 0 {
			continue
		}
		reply, err := g.Node.Processes.Environment(ctx, &agentv1.ProcessEnvironmentRequest{Pid: service.PID,
			Names: []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}})
		switch {
		case errors.Is(err, fault.ErrNotExist), errors.Is(err, fault.ErrPermission): // it has ended, or is protected
			continue
		case err != nil:
			return nil, err
		}
		var proxy Proxy
		for _, v := range reply.GetVariables() {
			proxy.set(v.GetName(), v.GetValue())
		}
		running[name] = proxy
	}
	return running, nil
}

// servicesKey is the registry key of services, each of which has a subkey. Windows adds the pairs of
// the value Environment there to the environment of the service's process.
const servicesKey = `HKLM\SYSTEM\CurrentControlSet\Services\`

// set sets a part of the proxy from a variable of an environment. It reports whether the variable is
// one of a proxy.
func (p *Proxy) set(variable, value string) bool {
	switch strings.ToUpper(variable) {
	case "HTTP_PROXY":
		p.HTTP = withoutPassword(value)
	case "HTTPS_PROXY":
		p.HTTPS = withoutPassword(value)
	case "NO_PROXY":
		p.No = value
	default:
		return false
	}
	return true
}

func withoutPassword(proxy string) string {
	if at := strings.LastIndex(proxy, "@"); at >= 0 {
		scheme, _, ok := strings.Cut(proxy, "://")
		if !ok {
			return proxy[at+1:]
		}
		return scheme + "://" + proxy[at+1:]
	}
	return proxy
}
