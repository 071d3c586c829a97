package kubeproxy

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
)

// Defect is a known defect of kube-proxy or Windows that has the form of a finding.
type Defect struct {
	Title string `json:"title"`
	Link  string `json:"link"`
	// Since and Fixed are versions of kube-proxy. Since is empty if no first one is known; Fixed is empty if there is none.
	Since string   `json:"since"`
	Fixed []string `json:"fixed"`
	// Affects reports whether this kube-proxy has the defect: yes, no (its version has the repair), or unknown.
	Affects string `json:"affects"`
}

// These are the values of Defect.Affects.
const (
	Affected    = "yes"
	NotAffected = "no"
	CannotTell  = "unknown"
)

// known is a defect with the form in which it shows.
type known struct {
	Defect
	form func(Finding) bool
}

// Defects returns all known defects.
func Defects() (all []Defect) {
	for _, k := range knownDefects() {
		all = append(all, k.Defect)
	}
	return all
}

func issue(number string) string { return "https://github.com/kubernetes/kubernetes/issues/" + number }

// knownDefects are from the issues, pull requests and change logs of kubernetes 1.22 to 1.38.0-beta.0.
func knownDefects() []known {
	is := func(kinds ...Kind) func(Finding) bool {
		return func(f Finding) bool { return slices.Contains(kinds, f.Kind) }
	}
	missing := func(uses ...Use) func(Finding) bool {
		return func(f Finding) bool { return f.Kind == Missing && slices.Contains(uses, f.Use) }
	}
	defect := func(title, number, since string, fixed ...string) Defect {
		if fixed == nil {
			fixed = []string{}
		}
		return Defect{Title: title, Link: issue(number), Since: since, Fixed: fixed}
	}
	return []known{
		{defect("a load balancer that another program removed is never made again", "135802", ""), is(Missing)},
		{defect("the rules are checked again only once an hour", "135631", "1.34.0", "1.34.4", "1.35.1", "1.36.0"), is(Missing, Backends)},
		{defect("the load balancer of a cluster IP vanishes if the internal traffic policy is Local", "133928", "1.31.0", "1.31.14",
			"1.32.10", "1.33.6", "1.34.2", "1.35.0"), missing(ClusterIP)},
		{defect("a Service whose external traffic policy is Local has no cluster IP on nodes without a pod of it", "115783", "1.26.0",
			"1.24.12", "1.25.8", "1.26.3", "1.27.0"), missing(ClusterIP)},
		{defect("after a failed node port, the external and ingress addresses of the Service are not programmed", "98499", ""),
			missing(NodePort, ExternalIP, IngressIP)},
		{defect("HNS 15.4 ignores the change of a load balancer", "131466", "1.31.0", "1.32.6", "1.33.2", "1.34.0"), is(Backends)},
		{defect("after a restart of HNS, load balancers cannot be made for ever (0xb7)", "139519", "", "1.37.0"), is(Backends)},
		{defect("a load balancer with deleted endpoints is taken for valid", "113524", "1.23.0", "1.24.9", "1.25.5", "1.26.0"),
			func(f Finding) bool { return f.Kind == Backends && f.DeadCount > 0 }},
		{defect("load balancers of IPv4 and IPv6 are taken for each other", "136240", "", "1.33.8", "1.34.4", "1.35.1", "1.36.0"),
			func(f Finding) bool {
				return f.Kind == Flags && slices.Contains([]Use{ClusterIP, ExternalIP, IngressIP, NodePort}, f.Use) || f.Kind == Backends
			}},
		{defect("the load balancer of a Service without endpoints is not deleted", "137530", ""), is(Stale)},
		{defect("load balancers are left over at each change", "112836", "1.24.0", "1.24.7", "1.25.3", "1.26.0"),
			func(f Finding) bool { return f.Kind == Doubled && f.Object == loadBalancer }},
		{defect("kube-proxy ends at a load balancer without ports", "141488", "", "1.36.5", "1.37.1"), is(NoPorts)},
		{defect("remote endpoints of pods behind several Services remain", "135144", "1.31.0", "1.32.10", "1.33.6", "1.34.2", "1.35.0"),
			is(StaleRemote)},
		{Defect{Title: "remote endpoints from before the start of kube-proxy remain",
			Link: "https://github.com/microsoft/Windows-Containers/issues/631", Fixed: []string{}}, is(StaleRemote)},
		{defect("a remote and a local endpoint share an address", "138000", "", "1.34.8", "1.35.5", "1.36.1", "1.37.0"), is(RemoteTwin)},
		{defect("the endpoint of a pod is deleted in place of its remote twin", "130963", "1.31.0", "1.31.9", "1.32.5", "1.33.1", "1.34.0"),
			is(LostPod)},
	}
}

// defectsOf returns the known defects that have the form of a finding, those of this version first. It leaves out the ones
// that this version does not have.
func defectsOf(all []known, f Finding, s Settings) []Defect {
	found := []Defect{}
	for _, k := range all {
		if !k.form(f) {
			continue
		}
		k.Affects = k.affects(s.Version)
		if k.Affects != NotAffected {
			found = append(found, k.Defect)
		}
	}
	return found
}

// affects reports whether a version has the defect. A minor version without a repair of its own has it, if it is older than
// the newest repair.
func (d Defect) affects(of string) string {
	v, err := version.ParseSemantic(of)
	if err != nil {
		return CannotTell
	}
	if d.Since != "" && v.LessThan(version.MustParseSemantic(d.Since)) {
		return NotAffected
	}
	newest := version.MustParseSemantic("0.0.0")
	for _, text := range d.Fixed {
		repaired := version.MustParseSemantic(text)
		if v.Major() == repaired.Major() && v.Minor() == repaired.Minor() && v.AtLeast(repaired) {
			return NotAffected
		}
		if newest.LessThan(repaired) {
			newest = repaired
		}
	}
	if len(d.Fixed) > 0 && v.AtLeast(newest) {
		return NotAffected
	}
	return Affected
}
