package ssh

import (
	"net"
	"slices"
	"strings"

	"github.com/kevinburke/ssh_config"
)

// Address returns the host and port that a name leads to by the SSH config, without contacting it: user@host,
// host or host:port, as in Target.Host. listed reports whether a Host of the config means this name, other than one for
// all hosts.
func Address(name string, o Options) (address string, listed bool, err error) {
	if o, err = o.complete(); err != nil {
		return "", false, err
	}
	config, err := readConfig(o)
	if err != nil {
		return "", false, err
	}
	h, err := config.hop(name[strings.LastIndex(name, "@")+1:], "the name of a node")
	if err != nil {
		return "", false, err
	}
	return h.address(), config.lists(h.alias), nil
}

// Listed returns the names of the Host lines of the SSH config that have no pattern, for completions.
func Listed(o Options) (names []string) {
	o, err := o.complete()
	if err != nil {
		return nil
	}
	config, err := readConfig(o)
	if err != nil || config.file == nil {
		return nil
	}
	for _, host := range config.file.Hosts {
		for _, pattern := range host.Patterns {
			if name := pattern.String(); !strings.ContainsAny(name, "*?!") && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// lists reports whether a Host line means an alias, other than `Host *`.
func (c sshConfig) lists(alias string) bool {
	if c.file == nil || net.ParseIP(alias) != nil {
		return false
	}
	return slices.ContainsFunc(c.file.Hosts, func(h *ssh_config.Host) bool {
		return h.Matches(alias) && slices.ContainsFunc(h.Patterns, func(p *ssh_config.Pattern) bool {
			return p.String() != "*" && !strings.HasPrefix(p.String(), "!")
		})
	})
}
