package comparison

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/platform"
)

// item is a value of a node.
type item struct {
	value      string
	likelihood Likelihood
	spelled    key // as the node spells it; see folded
	// anyCase reports whether Windows ignores the case of the value: a path, or the name of an account.
	anyCase bool
}

// form returns the value as it is compared.
func (i item) form() string {
	if i.anyCase {
		return strings.ToLower(i.value)
	}
	return i.value
}

// node is a node's facts as items.
type node struct {
	name, build string
	items       map[key]item // by folded keys
	// knows has the facts that are known.
	knows map[string]bool
	// unread has the folded keys of objects that the node has, or may have, and that could not be read.
	unread map[key]bool
	// objects are the objects of which items are parts, by folded keys.
	objects map[key]item
	gaps    []Gap
}

// knowsOf reports whether it is known what the node has of a folded key.
func (n *node) knowsOf(k key) bool {
	if program, _, _ := strings.Cut(k.name, " "); k.kind == Configuration && n.unread[key{k.kind, k.fact, program, ""}] {
		return false // it is unknown which files the program has
	}
	return n.knows[k.fact] && !n.unread[k.object()]
}

func (n *node) hasObject(k key) bool {
	_, has := n.objects[k]
	return has
}

// number returns the build without its revision; 0 if it is unknown.
func (n *node) number() int {
	build, _, _ := strings.Cut(n.build, ".")
	number, _ := strconv.Atoi(build)
	return number
}

// reader makes items of facts. It removes secrets, and replaces what is different on each node by its nature.
type reader struct {
	redactor *redact.Redactor
	node     *node
	own      *strings.Replacer
	hostname *regexp.Regexp // nil: the name is too short to be recognised
}

func newReader() (*reader, error) {
	redactor, err := redact.New(nil)
	return &reader{redactor: redactor}, err
}

// read returns the items of a node.
func (r *reader) read(f doctor.Facts) *node {
	r.node = &node{name: f.Node, items: map[key]item{}, knows: map[string]bool{}, unread: map[key]bool{},
		objects: map[key]item{}}
	r.ownNames(f)
	read(r, "machine", f.Machine, r.machine)
	read(r, "updatePackages", f.Packages, r.packages)
	read(r, "registrySwitches", f.Switches, r.switches)
	read(r, "driverFiles", f.Drivers, func(all []doctor.HashedFile) {
		for _, file := range all {
			r.file(Driver, "driverFiles", file)
		}
	})
	read(r, "registeredServices", f.Registrations, r.registrations)
	read(r, "programs", f.Programs, r.programs)
	read(r, "programFiles", f.Binaries, func(all []doctor.HashedFile) { r.binaries(f, all) })
	read(r, "configurationFiles", f.Configuration, r.configuration)
	read(r, "kubeletFlags", f.KubeletFlags, func(flags map[string]string) {
		for _, name := range slices.Sorted(keysOf(flags)) {
			r.add(key{Configuration, "kubeletFlags", "kubelet --" + name, ""}, cmp.Or(flags[name], `""`), likelihoodOf(name))
		}
	})
	read(r, "services", f.Services, r.services)
	read(r, "proxy", f.Proxy, r.proxy)
	read(r, "optionalFeatures", f.Features, func(all map[string]platform.FeatureState) {
		for _, name := range slices.Sorted(keysOf(all)) {
			r.add(key{Feature, "optionalFeatures", name, ""}, string(all[name]), Likely)
		}
	})
	read(r, "windowsUpdate", f.Updates, func(u doctor.Updates) {
		r.add(key{Windows, "windowsUpdate", "automatic updates", ""}, strconv.FormatBool(u.Automatic), Possible)
	})
	read(r, "pageFiles", f.PageFiles, func(files []string) {
		r.add(key{Windows, "pageFiles", "page files", ""}, strings.Join(files, ", "), Possible)
	})
	r.network(f)
	r.rest(f)
	return r.node
}

// read calls add with a fact's value if it is known, and else adds a gap.
func read[T any](r *reader, name string, fact doctor.Fact[T], add func(T)) {
	if fact.Value == nil {
		r.gap(name, cmp.Or(fact.Unknown, "it was not gathered"))
		return
	}
	r.node.knows[name] = true
	add(*fact.Value)
}

func (r *reader) gap(fact, why string) {
	r.node.gaps = append(r.node.gaps, Gap{Node: r.node.name, Fact: fact, Why: r.text("", why)})
}

// ownNames finds the names and addresses that only this node has, so that a setting with them is the same on all nodes.
func (r *reader) ownNames(f doctor.Facts) {
	var pairs []string
	if f.Object.Value != nil {
		for _, a := range f.Object.Value.Addresses {
			if a.Type == "InternalIP" && a.Address != "" {
				pairs = append(pairs, a.Address, "{address}")
			}
		}
	}
	if f.Reached.Value != nil {
		for _, reached := range *f.Reached.Value {
			if reached.Source != "" {
				pairs = append(pairs, reached.Source, "{address}")
			}
		}
	}
	r.own, r.hostname = strings.NewReplacer(pairs...), nil
	const shortest = 3
	if m := f.Machine.Value; m != nil && len(m.Hostname) >= shortest {
		r.hostname = regexp.MustCompile(`(?i)(^|[^\pL\pN-])` + regexp.QuoteMeta(m.Hostname) + `($|[^\pL\pN-])`)
	}
}

// text returns a value of a node as it is compared and printed.
func (r *reader) text(name, value string) string {
	value = string(r.redactor.Named(name, []byte(value)))
	if r.hostname != nil {
		value = r.hostname.ReplaceAllString(value, "${1}{hostname}${2}")
	}
	return doctor.Bounded(r.own.Replace(value))
}

func (r *reader) add(k key, value string, likelihood Likelihood) {
	r.set(k, item{value: value, likelihood: likelihood})
}

// set adds an item; i has its value as the node gave it.
func (r *reader) set(k key, i item) {
	i.value, i.spelled = r.text(cmp.Or(k.part, k.name), i.value), r.spelled(k)
	r.node.items[i.spelled.folded()] = i
}

// spelled returns a key as it is printed.
func (r *reader) spelled(k key) key {
	k.name, k.part = doctor.Bounded(r.redactor.String(k.name)), doctor.Bounded(r.redactor.String(k.part))
	return k
}

// part adds a part of an object.
func (r *reader) part(k key, value string, likelihood Likelihood) {
	r.partOf(k, item{value: value, likelihood: likelihood})
}

func (r *reader) partOf(k key, i item) {
	r.set(k, i)
	object := r.spelled(k).object()
	if !r.node.hasObject(object.folded()) {
		r.node.objects[object.folded()] = item{value: present, likelihood: i.likelihood, spelled: object}
	}
}

func (r *reader) file(kind Kind, fact string, file doctor.HashedFile) {
	if file.SHA256 != "" {
		r.add(key{kind, fact, file.Path, ""}, "sha256:"+file.SHA256, Likely)
	}
}

func (r *reader) machine(m doctor.Machine) {
	r.node.build = doctor.Bounded(m.Build)
	const fact, gigabyte = "machine", 1 << 30
	r.add(key{Windows, fact, "build", ""}, m.Build, Likely)
	r.add(key{Windows, fact, "product", ""}, m.Product, Unlikely)
	pending := cmp.Or(strings.Join(m.PendingReboot, ", "), "no")
	r.add(key{Windows, fact, "pending reboot", ""}, pending, Likely)
	r.add(key{Machine, fact, "architecture", ""}, m.Architecture, Likely)
	r.add(key{Machine, fact, "processors", ""}, strconv.Itoa(m.CPUs), Unlikely)
	r.add(key{Machine, fact, "memory", ""}, fmt.Sprintf("%d GiB", (m.Memory+gigabyte/2)/gigabyte), Unlikely)
	r.add(key{Machine, fact, "virtualization", ""}, strconv.FormatBool(m.Virtualization), Unlikely)
}

// The states of packages of Windows' servicing.
const (
	superseded = 80
	installed  = 112
)

// packages adds the versions of each package, without those that a later version replaced.
func (r *reader) packages(all []doctor.UpdatePackage) {
	versions := map[string][]string{}
	for _, p := range all {
		switch p.State {
		case installed:
			versions[p.Name] = append(versions[p.Name], p.Version)
		case superseded:
		default:
			versions[p.Name] = append(versions[p.Name], fmt.Sprintf("%s (state %d)", p.Version, p.State))
		}
	}
	for name, of := range versions {
		slices.Sort(of)
		r.add(key{Update, "updatePackages", name, ""}, strings.Join(of, ", "), Likely)
	}
}

func (r *reader) switches(all []doctor.Switch) {
	for _, s := range all {
		r.add(key{Switch, "registrySwitches", s.Key, s.Name}, s.Value, Likely)
	}
}

// stack has the services that containers and the pod network need, in lower case.
func stack() []string {
	return []string{"kubelet", "containerd", "kube-proxy", "csi-proxy", "hns", "vmcompute", "nvagent", "vmsmp", "vfpext", "wcifs",
		"bindflt", "cimfs", "winnat", "afunix", "tcpip", "mpssvc", "bfe", "nsi", "calicofelix", "caliconode", "antrea-agent",
		"ovs-vswitchd", "ovsdb-server", "flanneld", "windefend", "docker", "netsetupsvc"}
}

// registrations adds the start type, the program and the account of services and drivers. The command lines of kubelet,
// containerd and kube-proxy are among the configuration.
func (r *reader) registrations(all []doctor.Registration) {
	const fact = "registeredServices"
	var unread []string
	for _, s := range all {
		if s.Problem != "" {
			unread = append(unread, s.Name)
			r.node.unread[r.spelled(key{Service, fact, s.Name, ""}).folded()] = true
			r.node.unread[r.spelled(key{Driver, fact, s.Name, ""}).folded()] = true
			continue
		}
		kind, likelihood := Service, Unlikely
		if s.Driver {
			kind, likelihood = Driver, Possible
		}
		if slices.Contains(stack(), strings.ToLower(s.Name)) {
			likelihood = Likely
		}
		r.part(key{kind, fact, s.Name, "start type"}, s.Start, likelihood)
		if !hasCommandLine(s.Name) && s.Image != "" {
			// a driver has no arguments, whose case may have a meaning
			r.partOf(key{kind, fact, s.Name, "program"}, item{value: s.Image, likelihood: likelihood, anyCase: s.Driver})
		}
		if s.Account != "" {
			r.partOf(key{kind, fact, s.Name, "account"}, item{value: s.Account, likelihood: likelihood, anyCase: true})
		}
	}
	if len(unread) > 0 {
		r.gap(fact, "these may not be read: "+strings.Join(unread, ", "))
	}
}

// hasCommandLine reports whether services adds the command line of a service.
func hasCommandLine(service string) bool {
	return slices.Contains([]string{"kubelet", "containerd", "kube-proxy"}, strings.ToLower(service))
}
