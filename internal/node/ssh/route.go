package ssh

import (
	"fmt"
	"net"
	"os/user"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// A hop is one machine on the route; the last hop is the target.
type hop struct {
	alias          string // as written by the user
	host           string // name or address to connect to
	port           int
	user           string
	identityFiles  []string // from the SSH config; the files may not exist
	identitiesOnly bool     // offer neither the SSH agent's other keys nor the default keys
	identityAgent  string   // socket of the SSH agent; empty: the socket that the environment names
}

func (h hop) address() string { return net.JoinHostPort(h.host, strconv.Itoa(h.port)) }

// maxHops bounds the number of hops of a route, since a ProxyJump may lead in a circle.
const maxHops = 8

// route lists the hops to the target.
func route(target Target, o Options) ([]hop, error) {
	config, err := readConfig(o)
	if err != nil {
		return nil, err
	}
	last, err := config.hop(target.Host, "spec.credentials.hostname")
	if err != nil {
		return nil, err
	}
	if target.User != "" {
		last.user = target.User
	}
	if last.user == "" {
		last.user = DefaultUser
	}
	jump := target.ProxyJump
	if jump == "" {
		jump = config.get(last.alias, "ProxyJump")
	}
	before, err := config.jumps(jump, maxHops)
	if err != nil {
		return nil, err
	}
	return append(before, last), nil
}

// Names returns the names of all machines and users on the route to the target, also those that the SSH config
// gives them.
func Names(target Target, o Options) []string {
	names := []string{localUser()}
	o, err := o.complete()
	if err != nil {
		return names
	}
	hops, err := route(target, o)
	if err != nil { // Dial reports it
		return names
	}
	for _, h := range hops {
		names = append(names, h.alias, h.host, h.user)
	}
	return names
}

func (c sshConfig) get(alias, key string) string {
	if c.file == nil {
		return ""
	}
	// Get fails only if the config has an Include with a condition, which cannot be
	// evaluated.
	value, _ := c.file.Get(alias, key)
	return value
}

func (c sshConfig) getAll(alias, key string) []string {
	if c.file == nil {
		return nil
	}
	values, _ := c.file.GetAll(alias, key)
	return values
}

// hop resolves host[:port] by the config. setting is the name of the setting that contains
// hostPort, for errors.
func (c sshConfig) hop(hostPort, setting string) (hop, error) {
	alias, port, err := v1alpha1.HostPort(hostPort)
	if err != nil {
		return hop{}, &RouteError{Where: setting, Err: fmt.Errorf("%q: %w", hostPort, err)}
	}
	h := hop{alias: alias, host: alias, port: port, user: c.get(alias, "User")}
	if name := c.get(alias, "HostName"); name != "" {
		h.host = expandTokens(name, map[byte]string{'h': alias})
	}
	if configured := c.get(alias, "Port"); h.port == 0 && configured != "" {
		if h.port, err = strconv.Atoi(configured); err != nil || h.port < 1 || h.port > 65535 {
			return hop{}, &RouteError{Where: "Port of " + alias + " in the SSH config",
				Err: fmt.Errorf("%q is not a port", configured)}
		}
	}
	if h.port == 0 {
		h.port = v1alpha1.DefaultPort
	}
	for _, file := range c.getAll(alias, "IdentityFile") {
		if !strings.EqualFold(file, "none") {
			h.identityFiles = append(h.identityFiles, c.path(file, h))
		}
	}
	h.identitiesOnly = strings.EqualFold(c.get(alias, "IdentitiesOnly"), "yes")
	if socket := c.get(alias, "IdentityAgent"); socket != "" {
		h.identityAgent = c.path(socket, h)
	}
	return h, nil
}

// jumps lists the hops of a ProxyJump. If the config has a ProxyJump for the first of these hops,
// the hops of that ProxyJump come before it. most bounds the number of hops.
func (c sshConfig) jumps(proxyJump string, most int) ([]hop, error) {
	if proxyJump == "" || strings.EqualFold(proxyJump, "none") {
		return nil, nil
	}
	var hops []hop
	for _, each := range strings.Split(proxyJump, ",") {
		h, err := c.jump(strings.TrimSpace(each))
		if err != nil {
			return nil, err
		}
		hops = append(hops, h)
	}
	if len(hops) > most {
		return nil, &RouteError{Where: "proxyJump", Err: fmt.Errorf(
			"it leads over more than %d hosts; does a ProxyJump of the SSH config lead in a circle?", maxHops)}
	}
	before, err := c.jumps(c.get(hops[0].alias, "ProxyJump"), most-len(hops))
	if err != nil {
		return nil, err
	}
	return append(before, hops...), nil
}

func (c sshConfig) jump(text string) (hop, error) {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "ssh://"), "/")
	name, host := "", text
	if at := strings.LastIndex(text, "@"); at >= 0 {
		name, host = text[:at], text[at+1:]
	}
	h, err := c.hop(host, "proxyJump")
	if err != nil {
		return hop{}, err
	}
	if name != "" {
		h.user = name
	}
	if h.user == "" {
		h.user = localUser()
	}
	return h, nil
}

// localUser returns the name with which OpenSSH would log in to a jump host.
func localUser() string {
	current, err := user.Current()
	if err != nil {
		return DefaultUser
	}
	// On Windows, Username is DOMAIN\name.
	return current.Username[strings.LastIndex(current.Username, `\`)+1:]
}

// path expands ~, and the tokens and variables that ssh_config(5) allows in file names.
func (c sshConfig) path(path string, h hop) string {
	tokens := map[byte]string{'d': c.home, 'h': h.host, 'n': h.alias, 'r': h.user, 'u': localUser()}
	return c.fromHome(expandTokens(path, tokens))
}

func expandTokens(text string, tokens map[byte]string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		if value, ok := tokens[text[i]]; ok {
			b.WriteString(value)
		} else if text[i] == '%' {
			b.WriteByte('%')
		} else {
			b.WriteString(text[i-1 : i+1])
		}
	}
	return b.String()
}
