package simulated

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

// hostLocalMain imitates the CNI plug-in host-local with the commands ADD and DEL. The reply, the error of a second ADD and
// the files are those of the real program 1.9.1 (github.com/containernetworking/plugins, run on Linux): a file for each
// address, whose name is the address, with the container and the interface in two lines, and last_reserved_ip.0.
func hostLocalMain(p *Process) int {
	var config struct {
		CNIVersion string
		Name       string
		IPAM       struct {
			Ranges  [][]struct{ Subnet string }
			DataDir string
		}
	}
	text, err := io.ReadAll(p.Stdin)
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil || len(config.IPAM.Ranges) != 1 || len(config.IPAM.Ranges[0]) != 1 || config.Name == "" {
		return hostLocalFails(p, 6, fmt.Sprintf("failed to decode content from network config: %v", err))
	}
	subnet, err := netip.ParsePrefix(config.IPAM.Ranges[0][0].Subnet)
	if err != nil {
		return hostLocalFails(p, 999, err.Error())
	}
	l := hostLocal{p: p, subnet: subnet.Masked(), folder: windowsPath(config.IPAM.DataDir) + `\` + config.Name,
		owner: variableOf(p, "CNI_CONTAINERID") + "\r\n" + variableOf(p, "CNI_IFNAME")}
	switch command := variableOf(p, "CNI_COMMAND"); command {
	case "ADD":
		return l.add(config.CNIVersion)
	case "DEL":
		l.remove()
		return 0
	default:
		return hostLocalFails(p, 4, "unknown CNI_COMMAND: "+command)
	}
}

type hostLocal struct {
	p      *Process
	subnet netip.Prefix
	folder string
	owner  string
}

func (l hostLocal) add(version string) int {
	m, gateway := l.p.p.m, l.subnet.Addr().Next()
	if address := l.find(); address.IsValid() {
		owner, _, _ := strings.Cut(l.owner, "\r\n")
		return hostLocalFails(l.p, 999, fmt.Sprintf(
			"failed to allocate for range 0: %s has been allocated to %s, duplicate allocation is not allowed", address, owner))
	}
	for a := gateway.Next(); l.subnet.Contains(a); a = a.Next() {
		if _, err := m.ReadFile(l.file(a)); err == nil {
			continue
		}
		m.WriteFile(l.file(a), []byte(l.owner))
		m.WriteFile(l.folder+`\last_reserved_ip.0`, []byte(a.String()))
		reply, _ := json.MarshalIndent(map[string]any{"cniVersion": version, "dns": map[string]any{}, "ips": []any{map[string]any{
			"version": "4", "address": fmt.Sprintf("%s/%d", a, l.subnet.Bits()), "gateway": gateway.String()}}}, "", "    ")
		fmt.Fprintf(l.p.Stdout, "%s", reply)
		return 0
	}
	return hostLocalFails(l.p, 999, "failed to allocate for range 0: no IP addresses available in range set: "+l.subnet.String())
}

func (l hostLocal) remove() {
	if address := l.find(); address.IsValid() {
		_ = l.p.Platform.Files.Remove(l.file(address)) // it exists
	}
}

// find returns the address of the owner.
func (l hostLocal) find() netip.Addr {
	for a := l.subnet.Addr().Next(); l.subnet.Contains(a); a = a.Next() {
		if text, err := l.p.p.m.ReadFile(l.file(a)); err == nil && string(text) == l.owner {
			return a
		}
	}
	return netip.Addr{}
}

func (l hostLocal) file(a netip.Addr) string { return l.folder + `\` + a.String() }

func hostLocalFails(p *Process, code int, message string) int {
	reply, _ := json.MarshalIndent(map[string]any{"code": code, "msg": message}, "", "    ")
	fmt.Fprintf(p.Stdout, "%s", reply)
	return 1
}

// variableOf returns a variable that the caller gave to the process; "" if there is none.
func variableOf(p *Process, name string) string {
	for _, variable := range p.Environment {
		if key, value, _ := strings.Cut(variable, "="); strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}
