package comparison

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/join/preflight"
)

func keysOf[T any](m map[string]T) iter.Seq[string] { return maps.Keys(m) }

// likelihoodOf returns the likelihood for a flag or a field of a configuration. Those that name the node differ by nature.
func likelihoodOf(setting string) Likelihood {
	last := setting[strings.LastIndexAny(setting, ".]")+1:]
	if slices.Contains([]string{"hostname-override", "node-ip", "node-labels", "provider-id", "providerID", "register-with-taints",
		"subnet", "rangeStart", "rangeEnd", "podCIDR"}, last) {
		return Unlikely
	}
	return Likely
}

func (r *reader) programs(all map[string]doctor.Program) {
	const fact = "programs"
	for _, name := range slices.Sorted(keysOf(all)) {
		p := all[name]
		if !p.Exists {
			continue
		}
		r.add(key{Program, fact, name, ""}, strings.TrimSpace(p.Version+" sha256:"+p.SHA256), Likely)
		r.set(key{Program, fact, name + " is at", ""}, item{value: p.Path, likelihood: Possible, anyCase: true})
		r.add(key{Program, fact, "the process of " + name + " is older than its file", ""}, strconv.FormatBool(p.Outdated), Likely)
	}
}

// binaries adds the files that are no program of a service, whose hashes programs adds.
func (r *reader) binaries(f doctor.Facts, all []doctor.HashedFile) {
	var programs []string
	if f.Programs.Value != nil {
		for _, p := range *f.Programs.Value {
			programs = append(programs, p.Path)
		}
	}
	for _, file := range all {
		if !slices.ContainsFunc(programs, func(p string) bool { return strings.EqualFold(p, file.Path) }) {
			r.file(Program, "programFiles", file)
		}
	}
}

// configuration adds the settings of files. If only the bytes of a file differ, its comments or its format do.
func (r *reader) configuration(all []doctor.ConfigFile) {
	const fact = "configurationFiles"
	for _, file := range all {
		name := strings.TrimSpace(file.Program + " " + file.Path)
		if file.Problem != "" && file.SHA256 == "" {
			r.node.unread[r.spelled(key{Configuration, fact, name, ""}).folded()] = true
			r.gap(fact, name+" cannot be read: "+file.Problem)
			continue
		}
		if file.Problem != "" {
			r.add(key{Configuration, fact, name + " cannot be read", ""}, file.Problem, Likely)
			r.add(key{Configuration, fact, name, ""}, "sha256:"+file.SHA256, Likely)
			continue
		}
		r.part(key{Configuration, fact, name, ""}, present, Likely) // it may have no settings
		for _, setting := range slices.Sorted(keysOf(file.Settings)) {
			r.part(key{Configuration, fact, name, setting}, file.Settings[setting], likelihoodOf(setting))
		}
	}
}

// services adds the command lines of containerd and kube-proxy. kubelet's flags are a fact of their own.
func (r *reader) services(all map[string]preflight.Service) {
	const fact = "services"
	for _, name := range []string{"containerd", "kube-proxy"} {
		if s, ok := all[name]; ok && s.Line() != "" {
			r.add(key{Configuration, fact, "command line of " + name, ""}, s.Line(), Likely)
		}
	}
	for _, name := range []string{"containerd", "kube-proxy", "kubelet"} {
		s, ok := all[name]
		if !ok {
			continue
		}
		r.add(key{Service, fact, name + " depends on", ""}, strings.Join(s.Dependencies, ", "), Possible)
		if s.Restarts != nil {
			r.add(key{Service, fact, name + " is restarted after a failure", ""},
				fmt.Sprintf("%d times, repeated: %t", *s.Restarts, s.RestartsRepeat), Possible)
		}
	}
}

func (r *reader) proxy(p doctor.Proxy) {
	add := func(of string, p doctor.Proxy) {
		for name, value := range map[string]string{"HTTP_PROXY": p.HTTP, "HTTPS_PROXY": p.HTTPS, "NO_PROXY": p.No} {
			if value != "" {
				r.add(key{Configuration, "proxy", of + name, ""}, value, Likely)
			}
		}
	}
	add("", p)
	for _, service := range slices.Sorted(keysOf(p.Services)) {
		add(service+": ", p.Services[service])
	}
}

// network adds what Windows itself has of the network. Ports that Windows reserves for itself differ after each boot.
func (r *reader) network(f doctor.Facts) {
	read(r, "ports", f.Ports, func(p doctor.Ports) {
		r.add(key{Network, "ports", "dynamic ports", ""}, fmt.Sprintf("%d from %d on", p.DynamicCount, p.DynamicFirst), Possible)
		var reserved []string
		for _, e := range p.Excluded {
			if e.Administered {
				reserved = append(reserved, e.String())
			}
		}
		slices.Sort(reserved)
		r.add(key{Network, "ports", "ports that an administrator reserved", ""}, cmp.Or(strings.Join(reserved, ", "), "none"), Possible)
	})
	read(r, "interfaces", f.Interfaces, func(all []doctor.Interface) {
		for _, i := range all {
			r.add(key{Network, "interfaces", "MTU of " + i.Name, ""}, strconv.Itoa(i.MTU), Likely)
		}
	})
	read(r, "firewall", f.Firewall, func(all []doctor.FirewallRule) {
		rules := map[string][]string{}
		for _, rule := range all {
			action := "block"
			if rule.Allow {
				action = "allow"
			}
			rules[rule.Name] = append(rules[rule.Name],
				strings.Join(strings.Fields(action+" "+rule.Protocol+" "+rule.Ports+" "+rule.Program), " "))
		}
		for name, of := range rules {
			slices.Sort(of)
			r.add(key{Network, "firewall", "firewall rule " + name, ""}, strings.Join(of, "; "), Possible)
		}
	})
	if f.HNS.Value != nil { // without the service, HNS has no networks, and doctor's rules report that
		r.node.knows["hns"] = true
		for _, n := range f.HNS.Value.Networks {
			r.add(key{Network, "hns", "HNS network " + n.Name, ""}, n.Type, Likely)
		}
	}
}

// rest adds facts that few nodes differ in.
func (r *reader) rest(f doctor.Facts) {
	read(r, "defender", f.Defender, func(d preflight.Defender) {
		r.add(key{Windows, "defender", "Defender protects in real time", ""}, strconv.FormatBool(d.Protects), Possible)
		excluded := slices.Clone(d.Exclusions)
		slices.Sort(excluded)
		r.add(key{Windows, "defender", "Defender excludes", ""}, cmp.Or(strings.Join(excluded, ", "), "nothing"), Possible)
	})
	read(r, "rootCertificates", f.Roots, func(all []join.RootCertificate) {
		for _, c := range all {
			r.add(key{Configuration, "rootCertificates", "root certificate " + c.Name, ""}, "trusted: "+strconv.FormatBool(c.Trusted),
				Possible)
		}
	})
}
