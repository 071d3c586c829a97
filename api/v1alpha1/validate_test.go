package v1alpha1

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func validNode() *Node {
	return &Node{
		APIVersion: APIVersion, Kind: Kind,
		Metadata: Metadata{Name: "n"},
		Spec: NodeSpec{
			Credentials: Credentials{Hostname: "h"},
			Kubernetes: Kubernetes{Provisioners: []Provisioner{
				{Name: "containerd", SourceURL: "c.exe", Destination: `c:\c\containerd.exe`},
				{Name: "kubelet", SourceURL: "k.exe", Destination: `c:\k\kubelet.exe`},
			}},
		},
	}
}

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJX3oHMrEjw6bfGmzEtHzjBQ4hDgTVfXSjbFUDqlxAfQ me@home"

// Each change causes exactly the problems that its case lists, as "field:
// what".
func TestValidate(t *testing.T) {
	provisioner := func(change func(p *Provisioner)) func(n *Node) {
		return func(n *Node) { change(&n.Spec.Kubernetes.Provisioners[1]) }
	}
	credentials := func(change func(c *Credentials)) func(n *Node) {
		return func(n *Node) { change(&n.Spec.Credentials) }
	}
	setup := func(s Setup) func(n *Node) { return func(n *Node) { n.Spec.Setup = s } }
	const kubelet = "spec.kubernetes.provisioners[1]"

	tests := map[string]struct {
		change func(n *Node)
		want   []string
	}{
		"valid": {func(n *Node) {}, nil},
		"build": {provisioner(func(p *Provisioner) {
			p.Build = &Build{Command: Command{Args: []string{"make"}}, Watch: []string{"**/*.go", "!x/**", "a?.c"},
				Env: map[string]string{"A": ""}}
		}), nil},
		"empty build": {provisioner(func(p *Provisioner) { p.Build = &Build{} }),
			[]string{kubelet + ".build.command: is missing"}},
		"no program": {provisioner(func(p *Provisioner) { p.Build = &Build{Command: Command{Args: []string{}}} }),
			[]string{kubelet + ".build.command: names no program"}},
		"build of URL": {provisioner(func(p *Provisioner) {
			p.SourceURL = "https://h/k.exe"
			p.Build = &Build{Command: Command{Shell: "make"}}
		}), []string{kubelet + ".build: is set, but sourceURL is not a path on your machine"}},
		"build patterns and environment": {provisioner(func(p *Provisioner) {
			p.Build = &Build{Command: Command{Shell: "make"},
				Watch: []string{"", "/a", `a\b`, "a/../../b", "a**.go", "[a]"}, Env: map[string]string{"A=B": ""}}
		}), []string{kubelet + ".build.watch[0]: is empty", kubelet +
			`.build.watch[1]: "/a" is not a pattern below dir`,
			kubelet + `.build.watch[2]: "a\\b" is not a pattern below dir`,
			kubelet + `.build.watch[3]: "a/../../b" leads out of dir`,
			kubelet + `.build.watch[4]: "a**.go" has ** beside other characters`,
			kubelet + `.build.watch[5]: "[a]" has brackets`,
			kubelet + ".build.env[A=B]: is not the name of an environment variable"}},
		"everything at once": {func(n *Node) { *n = Node{} }, []string{
			`apiVersion: "" is not understood`, `kind: "" is not understood`, "metadata.name: is missing",
			"spec.credentials.hostname: is missing",
		}},
		"names": {func(n *Node) {
			n.Metadata = Metadata{Name: "-a", Labels: map[string]string{"example.com/os": "2022", "a b": "",
				"ok": "a b"}}
		}, []string{`metadata.name: "-a" is not a name`, "metadata.labels[a b]: is not a label's key",
			`metadata.labels[ok]: "a b" is not a label's value`}},

		"hostname is a URL": {credentials(func(c *Credentials) { c.Hostname = "ssh://me@h:22/" }),
			[]string{"spec.credentials.hostname: is a URL"}},
		"hostname has user": {credentials(func(c *Credentials) { c.Hostname = "me@h" }),
			[]string{"spec.credentials.hostname: names a user too"}},
		"hostname": {credentials(func(c *Credentials) { c.Hostname = "h:x" }),
			[]string{`spec.credentials.hostname: "h:x" is not a host: a port is a number from 1 to 65535`}},
		"two ways in": {credentials(func(c *Credentials) {
			c.PrivateKey, c.Password, c.PasswordFrom = "k", "p", &SecretSource{Env: "E"}
		}),
			[]string{"spec.credentials.password: is set beside privateKey"}},
		"key with passphrase": {credentials(func(c *Credentials) {
			c.PrivateKey, c.PassphraseFrom = "k", &SecretSource{File: "f"}
		}), nil},
		"usual key with passphrase": {credentials(func(c *Credentials) {
			c.PassphraseFrom = &SecretSource{File: "f"}
		}), nil},
		"passphrase without key": {credentials(func(c *Credentials) {
			c.Password, c.PassphraseFrom = "p", &SecretSource{File: "f"}
		}),
			[]string{"spec.credentials.passphraseFrom: is set, but there is no key that it could unlock"}},
		"key itself": {credentials(func(c *Credentials) { c.PrivateKey = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc" }),
			[]string{"spec.credentials.privateKey: is a key, not the path of one"}},
		"secret sources": {credentials(func(c *Credentials) {
			c.PasswordFrom, c.PassphraseFrom = &SecretSource{}, &SecretSource{Env: "$hunter2"}
		}), []string{
			"spec.credentials.passphraseFrom: is set, but there is no key that it could unlock",
			"spec.credentials.passwordFrom: says neither env nor file",
			"spec.credentials.passphraseFrom.env: is not the name of an environment variable"}},
		"host key": {credentials(func(c *Credentials) { c.HostKey = "ssh-ed25519 AAAA" }),
			[]string{"spec.credentials.hostKey: is not the SHA256 fingerprint of a host key"}},
		"host key ok": {credentials(func(c *Credentials) { c.HostKey = "SHA256:" + strings.Repeat("A", 43) }), nil},
		"jump": {credentials(func(c *Credentials) { c.ProxyJump = "me@a,b:0" }),
			[]string{`spec.credentials.proxyJump: "b:0" is not a jump host`}},
		"jump ok": {credentials(func(c *Credentials) { c.ProxyJump = "me@a,[::1]:22" }), nil},

		"packages": {setup(Setup{ChocoPackages: []string{"vim", "vim-x@1.2.3-beta", "VIM@9", "a b", "x; rm",
			"c@", ""}}), []string{
			"spec.setup.chocoPackages[2]: VIM is there already, as spec.setup.chocoPackages[0]",
			`spec.setup.chocoPackages[3]: "a b" is not a package`,
			`spec.setup.chocoPackages[4]: "x; rm" is not a package`,
			`spec.setup.chocoPackages[5]: "c@" has no version after @`, "spec.setup.chocoPackages[6]: is empty"}},
		"features": {setup(Setup{Features: []string{"Containers", "Microsoft-Hyper-V", "containers", "a/b"}}), []string{
			"spec.setup.features[2]: containers is there already, as spec.setup.features[0]",
			`spec.setup.features[3]: "a/b" is not a feature`}},
		"hosts": {setup(Setup{Hosts: []HostsEntry{{Address: "10.0.0.1", Names: []string{"cp", "cp.x"}},
			{Address: "::1", Names: []string{"cp"}}, {Address: "10.0.0.2", Names: []string{"CP", "a b"}},
			{Address: "x"}, {}}}), []string{
			"spec.setup.hosts[1].names[0]: cp is there already, as spec.setup.hosts[0].names[0]",
			"spec.setup.hosts[2].names[0]: CP is there already, as spec.setup.hosts[0].names[0]",
			`spec.setup.hosts[2].names[1]: "a b" is not a host name`,
			`spec.setup.hosts[3].address: "x" is not an IP address`, "spec.setup.hosts[3].names: is missing",
			"spec.setup.hosts[4].address: is missing", "spec.setup.hosts[4].names: is missing"}},
		"environment": {setup(Setup{Environment: map[string]string{"A": "x", "a": "y", "Path": "z", "B=C": "",
			"N": "\x00"}}), []string{
			"spec.setup.environment[B=C]: is not the name of a variable",
			"spec.setup.environment[N]: has a null character",
			"spec.setup.environment[Path]: would replace the machine's whole PATH",
			"spec.setup.environment[a]: a is there already, as spec.setup.environment[A]"}},
		"path": {setup(Setup{Path: []string{`c:\k`, `C:/K/`, `%SystemRoot%\x`, `c:\a;c:\b`, `k`, `%A`}}), []string{
			`spec.setup.path[1]: C:/K/ is there already, as spec.setup.path[0]`,
			"spec.setup.path[3]: has a semicolon, which separates folders",
			"spec.setup.path[4]: is relative",
			"spec.setup.path[5]: begins with an environment variable, which is not expanded"}},
		"firewall": {setup(Setup{Firewall: []FirewallRule{
			{Name: "a", Ports: "10250,8000-8100", Profiles: "domain,private",
				Addresses: "10.0.0.0/8,10.0.0.1-10.0.0.9,LocalSubnet"},
			{Name: "A", Direction: "inbound", Action: "deny", Protocol: "icmpv4", Ports: "1"},
			{Name: "all", Ports: "0,9-1,http", Profiles: "home", Addresses: "10.0.0.9-10.0.0.1"}, {}}}), []string{
			"spec.setup.firewall[1].name: A is there already, as spec.setup.firewall[0].name",
			`spec.setup.firewall[1].direction: "inbound" is not understood`,
			`spec.setup.firewall[1].action: "deny" is not understood`,
			"spec.setup.firewall[1].ports: is set, but icmpv4 has no ports",
			`spec.setup.firewall[2].name: "all" cannot be a rule's name`,
			`spec.setup.firewall[2].ports: "0" is neither a port nor a range`,
			`spec.setup.firewall[2].ports: "9-1" is neither a port nor a range`,
			`spec.setup.firewall[2].ports: "http" is neither a port nor a range`,
			`spec.setup.firewall[2].profiles: "home" is not understood`,
			`spec.setup.firewall[2].addresses: "10.0.0.9-10.0.0.1" is not an address`,
			"spec.setup.firewall[3].name: is missing"}},
		"keys": {setup(Setup{OpenSSH: &OpenSSH{AuthorizedKeys: []string{publicKey, "restrict " + publicKey,
			"~/.ssh/id.pub", "ssh-rsa AAAA", "-----BEGIN PRIVATE KEY-----", publicKey + "\n" + publicKey, ""}}}),
			[]string{
				"spec.setup.openSSH.authorizedKeys[3]: is neither a public key nor the path of a .pub file",
				"spec.setup.openSSH.authorizedKeys[4]: is a private key",
				"spec.setup.openSSH.authorizedKeys[5]: has more than one line",
				"spec.setup.openSSH.authorizedKeys[6]: is empty"}},

		"same provisioner": {provisioner(func(p *Provisioner) {
			p.Name, p.Destination = "Containerd", "C:/C/containerd.EXE"
		}), []string{
			kubelet + ".name: Containerd is there already, as spec.kubernetes.provisioners[0].name",
			kubelet + `.destination: C:\C\containerd.EXE is there already, as spec.kubernetes.provisioners[0].destination`}},
		"service name": {provisioner(func(p *Provisioner) { p.Name = "containerd:" }),
			[]string{kubelet + `.name: "containerd:" cannot be a service's name`}},
		"version": {provisioner(func(p *Provisioner) { p.Version = "latest build" }),
			[]string{kubelet + `.version: "latest build" is not a version`}},
		"source scheme": {provisioner(func(p *Provisioner) { p.SourceURL = "ftp://me:hunter2@h/k.exe" }),
			[]string{kubelet + ".sourceURL: has a scheme that is not understood"}},
		"source host": {provisioner(func(p *Provisioner) { p.SourceURL = "https:///k.exe" }),
			[]string{kubelet + ".sourceURL: is a URL without a host or path"}},
		"source artifact": {provisioner(func(p *Provisioner) { p.SourceURL = "oci://ghcr.io/Team/node:v1" }),
			[]string{kubelet + ".sourceURL: names no artifact in a registry"}},
		"source digest": {provisioner(func(p *Provisioner) { p.SourceURL = "oci://ghcr.io/node@sha256:abc" }),
			[]string{kubelet + ".sourceURL: names no artifact in a registry"}},
		"sha256": {provisioner(func(p *Provisioner) { p.SHA256 = "abc" }),
			[]string{kubelet + ".sha256: is not a SHA-256 hash"}},
		"folder": {provisioner(func(p *Provisioner) { p.Destination = `c:\k\` }),
			[]string{kubelet + ".destination: is a folder"}},
		"drive": {provisioner(func(p *Provisioner) { p.Destination = `c:/` }),
			[]string{kubelet + ".destination: is a folder"}},
		"own files": {provisioner(func(p *Provisioner) { p.Destination = `c:\k\kubelet.exe.SWDT-old` }),
			[]string{kubelet + ".destination: has .swdt- in it, which marks swdt's own files"}},
		"health": {provisioner(func(p *Provisioner) {
			p.Health = &Health{HTTPGet: "x", CRIPipe: `c:\x`, Settle: &Duration{2 * DefaultTimeout}}
		}), []string{
			kubelet + ".health: has more than one check", kubelet + ".health.httpGet: is not an http or https URL",
			kubelet + ".health.criPipe: is not a named pipe",
			kubelet + ".health.settle: 2m0s is longer than the timeout of 1m0s"}},
		"depends on itself": {provisioner(func(p *Provisioner) { p.DependsOn = []string{"KUBELET", "", "a", "A"} }),
			[]string{
				kubelet + ".dependsOn[1]: is empty", kubelet + ".dependsOn[3]: A is there already, as " + kubelet +
					".dependsOn[2]",
				kubelet + ".dependsOn: services wait for each other: kubelet → KUBELET"}},
		"depend on each other": {func(n *Node) { n.Spec.Kubernetes.Provisioners[0].DependsOn = []string{"kubelet"} },
			[]string{
				kubelet + ".dependsOn: services wait for each other: containerd → kubelet → containerd"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node := validNode()
			test.change(node)
			SetDefaults(node)
			var got []string
			for _, problem := range Validate(node) {
				got = append(got, problem.Field+": "+problem.What)
				if problem.Remedy == "" {
					t.Errorf("%s has no remedy", problem.Field)
				}
				if strings.Contains(problem.What+problem.Remedy, "hunter2") {
					t.Errorf("a secret shows: %+v", problem)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	node := validNode()
	if got := Warnings(node); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	node.Spec.Credentials.Password = "hunter2"
	node.Spec.Kubernetes.Provisioners[0].SourceURL = "https://me:hunter2@h/c.exe"
	node.Spec.Kubernetes.Provisioners[1].SourceURL = "https://$TOKEN@h/k.exe"
	var fields []string
	for _, warning := range Warnings(node) {
		fields = append(fields, warning.Field)
	}
	if want := []string{"spec.credentials.password",
		"spec.kubernetes.provisioners[0].sourceURL"}; !slices.Equal(fields, want) {
		t.Errorf("got %v, want %v", fields, want)
	}
}
