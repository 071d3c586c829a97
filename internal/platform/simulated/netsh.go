package simulated

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ipSettings are the IPv4 settings that netsh shows and sets.
type ipSettings struct {
	dynamicFirst, dynamicCount int
	excluded                   []excludedPorts
	adapters                   []adapter
}

type excludedPorts struct {
	first, last  int
	administered bool
}

type adapter struct {
	Adapter
	mtu       uint64
	connected bool
}

// usualIPSettings returns the settings of an unconfigured Windows Server: dynamic ports from 49152 (Microsoft KB 929851).
func usualIPSettings() ipSettings {
	return ipSettings{
		dynamicFirst: 49152, dynamicCount: 16384,
		excluded: []excludedPorts{{5357, 5357, false}, {5985, 5985, false}, {47001, 47001, false},
			{50000, 50059, true}},
		adapters: []adapter{loopback(), {usualAdapter(), 1500, true}},
	}
}

// ExcludePorts reserves TCP ports, as Hyper-V does for itself or, if `administered` is set, as an
// administrator does.
func (m *Machine) ExcludePorts(first, last int, administered bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ip.excluded = append(m.ip.excluded, excludedPorts{first, last, administered})
	slices.SortFunc(m.ip.excluded, func(a, b excludedPorts) int { return cmp.Compare(a.first, b.first) })
}

// SetDynamicPorts sets the range of TCP ports from which connections get their source port.
func (m *Machine) SetDynamicPorts(first, count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ip.dynamicFirst, m.ip.dynamicCount = first, count
}

// DynamicPorts returns the range of TCP ports from which connections get their source port.
func (m *Machine) DynamicPorts() (first, count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ip.dynamicFirst, m.ip.dynamicCount
}

// SetAdapter adds a network adapter, or changes the MTU of the adapter with that name.
func (m *Machine) SetAdapter(name string, mtu int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ip.setMTU(name, mtu)
}

func (s *ipSettings) setMTU(name string, mtu int) {
	i := slices.IndexFunc(s.adapters, func(a adapter) bool { return strings.EqualFold(a.Name, name) })
	if i < 0 {
		s.adapters = append(s.adapters, adapter{Adapter{Name: name}, uint64(mtu), true})
		return
	}
	s.adapters[i].mtu = uint64(mtu)
}

// netshMain imitates those commands of netsh.exe that swdt uses, with the output of an English
// Windows: the tables are those that the threads about reserved ports quote (microsoft/WSL#5306, docker/for-win#3171), and
// set dynamicport refuses a start below 1025, fewer than 255 ports, and ports beyond 65535 (Microsoft KB 929851). Some queries have a fixed output, since the machine has no such data. netshMain refuses
// any other command.
func netshMain(_ context.Context, p *Process) int {
	line := strings.ToLower(strings.Join(p.Args, " "))
	if rest, ok := strings.CutPrefix(line, "interface "); ok {
		line = "int " + rest
	}
	line = strings.NewReplacer("protocol=", "", "dynamicportrange", "dynamicport", "subinterfaces",
		"subinterface").Replace(line)
	m := p.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	shown, known := m.ip.show(line)
	switch {
	case known:
	case strings.HasPrefix(line, "int ipv4 set "):
		if !m.ip.set(strings.TrimPrefix(line, "int ipv4 set "), p.Args) {
			fmt.Fprint(p.Stdout, "The parameter is incorrect.\r\n\r\n")
			return 1
		}
		shown = "Ok.\r\n\r\n"
	default:
		fmt.Fprintf(p.Stdout, "The following command was not found: %s.\r\n", strings.Join(p.Args, " "))
		return 1
	}
	fmt.Fprint(p.Stdout, shown)
	return 0
}

func (s *ipSettings) show(line string) (string, bool) {
	switch line {
	case "int ipv4 show dynamicport tcp", "int ipv4 show dynamicport udp":
		protocol, first, count := line[len(line)-3:], s.dynamicFirst, s.dynamicCount
		if protocol == "udp" {
			first, count = 49152, 16384
		}
		return fmt.Sprintf("\r\nProtocol %s Dynamic Port Range\r\n---------------------------------\r\nStart Port     "+
			" : %d\r\nNumber of Ports : %d\r\n\r\n",
			protocol, first, count), true
	case "int ipv4 show excludedportrange tcp":
		return s.showExcluded("tcp", s.excluded), true
	case "int ipv4 show excludedportrange udp":
		return s.showExcluded("udp", nil), true
	case "int ipv4 show subinterface":
		return s.showAdapters(), true
	case "int ipv4 show interfaces":
		text := "\r\nIdx     Met         MTU          State                Name\r\n---  ----------  ----------  " +
			"------------  ---------------------------\r\n"
		for i, a := range s.adapters {
			text += fmt.Sprintf("%3d  %10d  %10d  %-12s  %s\r\n", i+1, 25, a.mtu, "connected", a.Name)
		}
		return text + "\r\n", true
	case "int ipv4 show neighbors":
		return "\r\nInterface 2: Ethernet\r\n\r\n\r\nInternet Address                              Physical Address   " +
			"Type\r\n" +
			"--------------------------------------------  -----------------  -----------\r\n" +
			"192.168.122.1                                 52-54-00-12-34-56  Reachable\r\n\r\n", true
	case "winhttp show proxy":
		return "\r\nCurrent WinHTTP proxy settings:\r\n\r\n    Direct access (no proxy server).\r\n\r\n", true
	case "advfirewall show allprofiles":
		return "\r\nPublic Profile Settings: \r\n" +
			"----------------------------------------------------------------------\r\nState                          " +
			"       ON\r\n" +
			"Firewall Policy                       BlockInbound,AllowOutbound\r\n\r\nOk.\r\n\r\n", true
	case "wfp show netevents file=-":
		return "<?xml version=\"1.0\"?>\r\n<netEvents numItems=\"0\"/>\r\n", true
	case "wfp show state file=-", "wfp show filters file=-":
		return "<?xml version=\"1.0\"?>\r\n<wfpstate/>\r\n", true
	}
	return "", false
}

func (s *ipSettings) showExcluded(protocol string, ranges []excludedPorts) string {
	text := "\r\nProtocol " + protocol +
		" Port Exclusion Ranges\r\n\r\nStart Port    End Port      \r\n----------    " +
		"--------      \r\n"
	for _, r := range ranges {
		star := "      "
		if r.administered {
			star = "     *"
		}
		text += fmt.Sprintf("%10d  %10d%s\r\n", r.first, r.last, star)
	}
	return text + "\r\n* - Administered port exclusions.\r\n\r\n"
}

func (s *ipSettings) showAdapters() string {
	text := "\r\n       MTU  MediaSenseState      Bytes In     Bytes Out  Interface\r\n----------  ---------------  " +
		"------------  ------------  -------------\r\n"
	for _, a := range s.adapters {
		state, bytes := 5, 0
		if a.connected {
			state, bytes = 1, 96_245_017
		}
		text += fmt.Sprintf("%10d  %15d  %12d  %12d  %s\r\n", a.mtu, state, bytes, bytes, a.Name)
	}
	return text + "\r\n"
}

// set carries out `netsh int ipv4 set` for dynamicport and subinterface. It returns false for an
// invalid command.
func (s *ipSettings) set(line string, args []string) bool {
	values := map[string]int{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if n, err := strconv.Atoi(value); ok && err == nil {
			values[strings.ToLower(name)] = n
		}
	}
	switch {
	case strings.HasPrefix(line, "dynamicport tcp ") && values["start"] > 1024 && values["num"] > 254 &&
		values["start"]+values["num"] <= 1<<16:
		s.dynamicFirst, s.dynamicCount = values["start"], values["num"]
		return true
	case strings.HasPrefix(line, "subinterface ") && len(args) > 4 && values["mtu"] > 0:
		s.setMTU(strings.Trim(args[4], `"`), values["mtu"])
		return true
	}
	return false
}
