package doctor

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

func proxyRules() []Rule {
	return []Rule{
		{
			ID: "proxy", Title: "NO_PROXY covers the cluster's own addresses", Severity: finding.Warning,
			Needs: []string{"proxy", "kubeconfig"},
			Means: "kubelet and containerd use the machine's proxy: if the proxy cannot reach the API server, or " +
				"Services, the node loses its cluster.",
			Remedy: "add these addresses to spec.kubernetes.proxy.noProxy, and run `swdt join`, which restarts containerd and kubelet", look: lookAtProxy,
			Link: "https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/install-kubeadm/",
		},
		{
			ID: "proxy-running", Title: "services run with the proxy that is set", Severity: finding.Warning,
			Needs: []string{"proxy"},
			Means: "Windows gives a service its variables when it starts, and the machine's variables only after a restart of " +
				"Windows: until then it uses the old proxy, or none, and pulls of images time out.",
			Remedy: "set spec.kubernetes.proxy and run `swdt join`, which restarts containerd and kubelet, or restart Windows", look: lookAtRunningProxies,
			Link: "https://github.com/containerd/containerd/issues/6609",
		},
		{
			ID: "root-certificates", Title: "the machine trusts the private certification authorities", Severity: finding.Warning,
			Needs: []string{"rootCertificates"},
			Means: "containerd verifies registries and proxies by the machine's root certificates: without that of a " +
				"private registry, pulls of its images fail with `certificate signed by unknown authority`.",
			Remedy: "correct spec.kubernetes.certificateAuthorities and run `swdt join`, which restarts containerd",
			look:   lookAtRoots,
			Link:   "https://learn.microsoft.com/windows/win32/seccrypto/system-store-locations",
		},
	}
}

// lookAtRoots compares the root certificates that a join has added with the machine's store.
func lookAtRoots(f *Facts) (all []finding.Finding) {
	const early = 30 * 24 * time.Hour
	for _, root := range *f.Roots.Value {
		left := root.NotAfter.Sub(f.Taken)
		seen := fmt.Sprintf("%s, valid until %s", root.Name, root.NotAfter.UTC().Format(time.RFC3339))
		switch {
		case !root.Trusted:
			all = append(all, finding.New(seen, "%s is no longer among the machine's root certificates", root.Name))
		case left <= 0:
			all = append(all, finding.New(seen, "the root certificate %s has expired", root.Name))
		case left <= early:
			all = append(all, finding.New(seen, "the root certificate %s expires in %s", root.Name, days(left)).As(finding.Info))
		}
	}
	return all
}

func lookAtProxy(f *Facts) (all []finding.Finding) {
	for _, used := range f.Proxy.Value.used() {
		all = append(all, lookAtProxyOf(f, used.by, used.Proxy)...)
	}
	return all
}

func lookAtProxyOf(f *Facts, by string, proxy Proxy) (all []finding.Finding) {
	if proxy.HTTP == "" && proxy.HTTPS == "" {
		return nil
	}
	asked := proxy.HTTPS != "" || strings.HasPrefix(f.Kubeconfig.Value.Server, "http://") && proxy.HTTP != ""
	seen := fmt.Sprintf("HTTP_PROXY=%s HTTPS_PROXY=%s NO_PROXY=%s", proxy.HTTP, proxy.HTTPS, proxy.No)
	server := f.Kubeconfig.Value.Server
	around, inside := finding.New(seen, "%s uses its proxy for the API server %s", by, hostOf(server)),
		finding.New(seen, "%s uses its proxy for the cluster's services", by).As(finding.Info)
	if by == theMachine {
		inside = inside.Remedied("add .svc,.cluster.local and the addresses of pods and services to the machine's NO_PROXY " +
			"(spec.setup.environment), and run `swdt setup`")
	} else {
		const remedy = "add it to NO_PROXY in the value Environment of the service's key in the registry " +
			`(HKLM\SYSTEM\CurrentControlSet\Services), and restart the service`
		around, inside = around.Remedied(remedy), inside.Remedied(remedy)
	}
	if server != "" && asked && !proxy.passes(hostOf(server)) {
		all = append(all, around)
	}
	if !proxy.passes("kubernetes.default.svc") {
		all = append(all, inside)
	}
	return all
}

const theMachine = "the machine"

// usedProxy is a proxy, and what uses it.
type usedProxy struct {
	by string
	Proxy
}

// used returns the machine's proxy, unless kubelet has a proxy of its own, and those of the services.
func (p Proxy) used() (all []usedProxy) {
	if _, own := p.Services["kubelet"]; !own {
		all = append(all, usedProxy{theMachine, p})
	}
	for _, name := range slices.Sorted(maps.Keys(p.Services)) {
		all = append(all, usedProxy{"the service " + name, p.Services[name]})
	}
	return all
}

// passes reports whether NO_PROXY has the host name, or a domain or address range that
// contains the host.
func (p Proxy) passes(name string) bool {
	for entry := range strings.SplitSeq(folded(p.No), ",") {
		entry = strings.TrimSpace(entry)
		if entry == "*" {
			return true
		}
		entry = strings.TrimPrefix(entry, "*")
		if host, _, err := net.SplitHostPort(entry); err == nil {
			entry = host
		}
		switch {
		case entry == "":
		case entry == name, strings.HasSuffix(name, "."+strings.TrimPrefix(entry, ".")), within(entry, name):
			return true
		}
	}
	return false
}

// lookAtRunningProxies compares the proxies of running services with those that they get at their next start.
func lookAtRunningProxies(f *Facts) (all []finding.Finding) {
	proxy := f.Proxy.Value
	for _, name := range slices.Sorted(maps.Keys(proxy.Running)) {
		running, set := proxy.Running[name], *proxy
		own, hasOwn := proxy.Services[name]
		if hasOwn {
			set = own
		}
		if running.text() == set.text() {
			continue
		}
		found := finding.New("it runs with "+running.text()+", and "+set.text()+" is set", "%s does not run with the proxy that is set", name)
		if hasOwn {
			started := name
			if name == "containerd" { // kubelet depends on it: it stops and starts with containerd
				started = "kubelet"
			}
			found = found.Remedied("restart it: `swdt exec -- net stop %s /y`, then `swdt exec -- net start %s`", name, started)
		}
		all = append(all, found)
	}
	return all
}

// text returns the variables of the proxy.
func (p Proxy) text() string {
	return fmt.Sprintf("HTTP_PROXY=%s HTTPS_PROXY=%s NO_PROXY=%s", p.HTTP, p.HTTPS, p.No)
}
