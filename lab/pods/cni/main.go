// Command lab-network is a CNI plugin (containernetworking/cni, SPEC.md) that gives every pod an address and no network,
// which is all that containerd needs to run a pod that is not HostProcess. If the network's configuration has the
// prefix 127.244, these are addresses of loopback, on which programs in pods under Wine can listen.
//
// If the network's configuration names a file in dnsFile, and has the capability dns, the plugin
// writes the pod's name servers and search domains to that file, in the form of resolv.conf. A test
// mounts the file, so that programs under Wine use them. Only one pod at a time can have names.
//
// If the network's configuration names an HNS network in hnsNetwork, the plugin makes an endpoint in it for each pod, with
// the name, the address and the MAC address that win-overlay gives it (containernetworking/plugins v1.9.1,
// plugins/main/windows/win-overlay and pkg/hns/endpoint_windows.go), and removes it with the pod.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"
)

type config struct {
	CNIVersion    string `json:"cniVersion"`
	DNSFile       string `json:"dnsFile"`
	HNSNetwork    string `json:"hnsNetwork"`
	Prefix        string `json:"prefix"` // the first two bytes of addresses; "": 10.244
	RuntimeConfig struct {
		DNS dns `json:"dns"`
	} `json:"runtimeConfig"`
}

// dns has the names of the capability dns.
type dns struct {
	Servers  []string `json:"servers"`
	Searches []string `json:"searches"`
	Options  []string `json:"options"`
}

type address struct {
	Version   string `json:"version,omitempty"` // only until version 0.4.0 of CNI
	Address   string `json:"address"`
	Gateway   string `json:"gateway"`
	Interface int    `json:"interface"`
}

type netInterface struct {
	Name    string `json:"name"`
	Sandbox string `json:"sandbox"`
}

// hung is a fault that tests plant: if the file exists, a pod's address never comes.
const hung = `C:\lab\hung-network`

func main() {
	answer, err := run(os.Getenv("CNI_COMMAND"), os.Stdin)
	if err != nil {
		answer = map[string]any{"cniVersion": "0.3.1", "code": 100, "msg": err.Error()}
	}
	if answer != nil {
		_ = json.NewEncoder(os.Stdout).Encode(answer) // containerd could not read an error of this call either
	}
	if err != nil {
		os.Exit(1)
	}
}

func run(command string, stdin io.Reader) (any, error) {
	var c config
	if err := json.NewDecoder(stdin).Decode(&c); err != nil {
		return nil, fmt.Errorf("read the network's configuration: %w", err)
	}
	switch command {
	case "VERSION":
		return map[string]any{"cniVersion": c.CNIVersion, "supportedVersions": []string{"0.3.0", "0.3.1",
			"0.4.0", "1.0.0"}}, nil
	case "DEL":
		return nil, c.removeEndpoint()
	case "CHECK", "GC", "STATUS":
		return nil, nil
	case "ADD":
		if _, err := os.Stat(hung); err == nil {
			time.Sleep(24 * time.Hour) // without a timer, Go would end a program in which nothing runs
		}
		if err := c.writeDNS(); err != nil {
			return nil, err
		}
		if err := c.makeEndpoint(); err != nil {
			return nil, err
		}
		return added(c), nil
	}
	return nil, fmt.Errorf("CNI_COMMAND is %q", command)
}

// writeDNS writes the pod's resolver configuration. The file may be mounted, so it is not replaced.
func (c config) writeDNS() error {
	names := c.RuntimeConfig.DNS
	if c.DNSFile == "" || len(names.Servers) == 0 {
		return nil
	}
	var text strings.Builder
	for _, server := range names.Servers {
		fmt.Fprintf(&text, "nameserver %s\n", server)
	}
	if len(names.Searches) > 0 {
		fmt.Fprintf(&text, "search %s\n", strings.Join(names.Searches, " "))
	}
	if len(names.Options) > 0 {
		fmt.Fprintf(&text, "options %s\n", strings.Join(names.Options, " "))
	}
	if err := os.WriteFile(c.DNSFile, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("write the pod's name servers: %w", err)
	}
	return nil
}

// podAddress returns the address of a pod, which is computed from the pod's ID, so the plugin does not have to store
// addresses. Nodes with Linux have the lower half of the range.
func (c config) podAddress() netip.Addr {
	pod := fnv.New32a()
	pod.Write([]byte(os.Getenv("CNI_CONTAINERID")))
	number := pod.Sum32()
	return netip.MustParseAddr(fmt.Sprintf("%s.%d.%d", c.prefix(), 128|number>>8&0x7f, 2+number%250))
}

func (c config) prefix() string { return cmp.Or(c.Prefix, "10.244") }

// added returns the result of ADD.
func added(c config) any {
	ip := address{Address: c.podAddress().String() + "/16", Gateway: c.prefix() + ".0.1"}
	if c.CNIVersion < "1.0.0" {
		ip.Version = "4"
	}
	return map[string]any{
		"cniVersion": c.CNIVersion,
		"interfaces": []netInterface{{os.Getenv("CNI_IFNAME"), os.Getenv("CNI_NETNS")}},
		"ips":        []address{ip},
		"dns":        map[string]any{},
	}
}
