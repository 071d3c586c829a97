package v1alpha1

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

func validateSetup(p *problems, field string, s Setup) {
	validateChocoPackages(p, field+".chocoPackages", s.ChocoPackages)
	validateFeatures(p, field+".features", s.Features)
	validateHosts(p, field+".hosts", s.Hosts)
	validateEnvironment(p, field+".environment", s.Environment)
	validatePath(p, field+".path", s.Path)
	validateFirewall(p, field+".firewall", s.Firewall)
	if s.OpenSSH != nil {
		validateAuthorizedKeys(p, field+".openSSH.authorizedKeys", s.OpenSSH.AuthorizedKeys)
	}
	validateRegistry(p, field+".registry", s)
	validateExclusions(p, field+".defender.excludePaths", s.Defender.ExcludePaths)
	validateExclusions(p, field+".defender.excludeProcesses", s.Defender.ExcludeProcesses)
}

func validateChocoPackages(p *problems, field string, packages []string) {
	seen := newSeen(p)
	for i, entry := range packages {
		name, version, versioned := strings.Cut(entry, "@")
		switch {
		case entry == "":
			p.add(at(field, i, ""), "is empty", "write a package's name")
		case !matches(`[A-Za-z0-9][A-Za-z0-9._+-]*`, name):
			p.add(at(field, i, ""), fmt.Sprintf("%.60q is not a package", entry), "write name or name@version")
		case versioned && !matches(`[A-Za-z0-9][A-Za-z0-9._+-]*`, version):
			p.add(at(field, i, ""), fmt.Sprintf("%.60q has no version after @", entry), "write name or name@version")
		default:
			seen.add(at(field, i, ""), name)
		}
	}
}

func validateFeatures(p *problems, field string, features []string) {
	seen := newSeen(p)
	for i, feature := range features {
		switch {
		case feature == "":
			p.add(at(field, i, ""), "is empty", "write a feature's name")
		case !matches(`[A-Za-z0-9][A-Za-z0-9._-]*`, feature):
			p.add(at(field, i, ""), fmt.Sprintf("%.60q is not a feature", feature),
				"write a name of `dism /Online /Get-Features`, such as Containers")
		default:
			seen.add(at(field, i, ""), feature)
		}
	}
}

func validateHosts(p *problems, field string, entries []HostsEntry) {
	seen := newSeen(p) // a name may occur once, since swdt writes one address for each name
	for i, entry := range entries {
		_, err := netip.ParseAddr(entry.Address)
		if p.required(at(field, i, "address"), entry.Address, "write an IPv4 or IPv6 address") && err != nil {
			p.add(at(field, i, "address"), fmt.Sprintf("%.60q is not an IP address", entry.Address),
				"write an IPv4 or IPv6 address")
		}
		if len(entry.Names) == 0 {
			p.add(at(field, i, "names"), "is missing", "list the names of the address")
		}
		for j, name := range entry.Names {
			nameField := at(at(field, i, "names"), j, "")
			if name == "" || checkHost(name) != nil {
				p.add(nameField, fmt.Sprintf("%.60q is not a host name", name), "use letters, digits, - and .")
			} else {
				seen.add(nameField, name)
			}
		}
	}
}

func validateEnvironment(p *problems, field string, variables map[string]string) {
	seen := newSeen(p)
	for name, value := range sorted(variables) {
		variable := fmt.Sprintf("%s[%s]", field, name)
		switch {
		case strings.EqualFold(name, "PATH"):
			p.add(variable, "would replace the machine's whole PATH", "use setup.path, which appends to it")
		case name == "" || strings.Contains(name, "=") || hasControl(name):
			p.add(variable, "is not the name of a variable", "use a name without = and control characters")
		case strings.Contains(value, "\x00"):
			p.add(variable, "has a null character", "remove it")
		default:
			seen.add(variable, name)
		}
	}
}

func validatePath(p *problems, field string, folders []string) {
	seen := newSeen(p)
	for i, folder := range folders {
		entry := at(field, i, "")
		if strings.Contains(folder, ";") {
			p.add(entry, "has a semicolon, which separates folders", "make two items of it")
			continue
		}
		// Unlike a destination, an entry of PATH may begin with a variable.
		checked := folder
		if variable, rest, ok := cutVariable(folder); ok && variable != "" {
			checked = `C:\` + rest
		}
		clean, err := CleanWindowsPath(checked)
		if err != nil {
			p.addPath(entry, err)
			continue
		}
		seen.addAs(entry, folder, clean)
	}
}

// cutVariable splits a path such as %SystemRoot%\x after the variable. ok is false if the path
// does not begin with a variable.
func cutVariable(path string) (variable, rest string, ok bool) {
	after, ok := strings.CutPrefix(path, "%")
	if !ok {
		return "", path, false
	}
	return strings.Cut(after, "%")
}

func validateFirewall(p *problems, field string, rules []FirewallRule) {
	seen := newSeen(p)
	for i, rule := range rules {
		name := at(field, i, "name")
		if p.required(name, rule.Name, "name the rule") {
			if hasControl(rule.Name) || strings.ContainsAny(rule.Name, `"|`) || strings.EqualFold(rule.Name, "all") {
				p.add(name, fmt.Sprintf("%.60q cannot be a rule's name", rule.Name),
					`choose a name that contains neither " nor |, and is not all`)
			} else {
				seen.add(name, rule.Name)
			}
		}
		p.oneOf(at(field, i, "direction"), rule.Direction, "in", "out")
		p.oneOf(at(field, i, "action"), rule.Action, "allow", "block")
		p.oneOf(at(field, i, "protocol"), rule.Protocol, "tcp", "udp", "icmpv4", "icmpv6", "any")
		validatePorts(p, at(field, i, "ports"), rule)
		validateProfiles(p, at(field, i, "profiles"), rule.Profiles)
		validateAddresses(p, at(field, i, "addresses"), rule.Addresses)
	}
}

func validatePorts(p *problems, field string, rule FirewallRule) {
	if rule.Ports == "any" {
		return
	}
	if rule.Protocol != "tcp" && rule.Protocol != "udp" {
		p.add(field, "is set, but "+rule.Protocol+" has no ports", "remove it, or set protocol to tcp or udp")
		return
	}
	for entry := range strings.SplitSeq(rule.Ports, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(entry), "-")
		from, err := strconv.ParseUint(first, 10, 16)
		to := from
		if isRange && err == nil {
			to, err = strconv.ParseUint(last, 10, 16)
		}
		if err != nil || from == 0 || to < from {
			p.add(field, fmt.Sprintf("%.40q is neither a port nor a range", entry),
				"write 10250, 8000-8100, several with commas, or any")
		}
	}
}

func validateProfiles(p *problems, field, profiles string) {
	if profiles == "any" {
		return
	}
	for profile := range strings.SplitSeq(profiles, ",") {
		p.oneOf(field, strings.TrimSpace(profile), "domain", "private", "public")
	}
}

func validateAddresses(p *problems, field, addresses string) {
	for entry := range strings.SplitSeq(addresses, ",") {
		entry = strings.TrimSpace(entry)
		if !isAddress(entry) &&
			!slices.Contains([]string{"any", "localsubnet", "dns", "dhcp", "wins", "defaultgateway"},
				strings.ToLower(entry)) {
			p.add(field, fmt.Sprintf("%.60q is not an address", entry),
				"write 10.0.0.1, 10.0.0.0/8, 10.0.0.1-10.0.0.9 or LocalSubnet, several with commas, or any")
		}
	}
}

// isAddress reports whether text is an address, a network or a range.
func isAddress(text string) bool {
	if _, err := netip.ParsePrefix(text); err == nil {
		return true
	}
	first, last, isRange := strings.Cut(text, "-")
	from, err := netip.ParseAddr(first)
	if err != nil || !isRange {
		return err == nil
	}
	to, err := netip.ParseAddr(last)
	return err == nil && from.BitLen() == to.BitLen() && !to.Less(from)
}

func validateAuthorizedKeys(p *problems, field string, keys []string) {
	for i, key := range keys {
		entry := at(field, i, "")
		switch {
		case key == "":
			p.add(entry, "is empty", "write a public key or the path of a .pub file")
		case strings.Contains(key, "PRIVATE KEY"):
			p.add(entry, "is a private key",
				"write the public key, or the path of its .pub file; private keys stay where they are")
		case hasControl(key):
			p.add(entry, "has more than one line", "make an item of each key")
		case strings.HasSuffix(key, ".pub") || isPublicKey(key):
		default:
			p.add(entry, "is neither a public key nor the path of a .pub file",
				"write it as in authorized_keys: ssh-ed25519 AAAA… comment")
		}
	}
}

// isPublicKey reports whether a line of authorized_keys has a key: the name of a key type,
// and then base64 data that begins with the same name. Options may precede the key.
func isPublicKey(line string) bool {
	words := strings.Fields(line)
	for i := range len(words) - 1 {
		data, err := base64.StdEncoding.DecodeString(words[i+1])
		if err != nil || len(data) < 4 {
			continue
		}
		length := binary.BigEndian.Uint32(data)
		if rest := data[4:]; uint64(length) < uint64(len(rest)) && string(rest[:length]) == words[i] {
			return true
		}
	}
	return false
}

// oneOf rejects a value that is not one of the allowed words.
func (p *problems) oneOf(field, value string, allowed ...string) {
	if slices.Contains(allowed, value) {
		return
	}
	last := len(allowed) - 1
	p.add(field, fmt.Sprintf("%.40q is not understood", value),
		"write "+strings.Join(allowed[:last], ", ")+" or "+allowed[last])
}

// seen adds a problem for each duplicate name. It ignores case, as Windows does.
type seen struct {
	problems *problems
	first    map[string]string // the keys are names in lower case, the values are the first fields with these names
}

func newSeen(p *problems) seen { return seen{p, map[string]string{}} }

func (s seen) add(field, name string) { s.addAs(field, name, name) }

// addAs is like add, but compares identities instead of names. The problem contains the name.
func (s seen) addAs(field, name, identity string) {
	identity = strings.ToLower(identity)
	if first, twice := s.first[identity]; twice {
		s.problems.add(field, fmt.Sprintf("%.80s is there already, as %s", name, first), "remove one of them")
		return
	}
	s.first[identity] = field
}

// sorted iterates over a map in the order of its keys, so that problems have a
// fixed order.
func sorted(m map[string]string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
