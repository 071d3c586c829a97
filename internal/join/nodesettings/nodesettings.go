// Package nodesettings reads the settings of kubelet, kube-proxy and containerd on a node, which package upgradecheck
// holds against newer versions: the command lines of the services, the scripts that start them, and their configuration
// files. It makes one request for the services and one for each file, and changes nothing.
package nodesettings

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// The services, and the files that they run or read if their command lines name no others.
const (
	kubelet        = "kubelet"
	kubeProxy      = "kube-proxy"
	containerd     = "containerd"
	kubeletExe     = `C:\k\kubelet.exe`
	kubeProxyExe   = `C:\k\kube-proxy.exe`
	containerdExe  = `C:\Program Files\containerd\bin\containerd.exe`
	containerdFile = `C:\Program Files\containerd\config.toml`
	servicesKey    = `HKLM\SYSTEM\CurrentControlSet\Services\`
)

// most bounds the requests for one node. A node with all of them has a script for kubelet and one for kube-proxy, a
// configuration file of each program, kubeadm-flags.env and one drop-in.
const most = 10

// Read returns the settings of a node whose name in the cluster is name; "": that of the machine, as kubelet chooses it. It
// fails only if the node does not list its services; a file that it cannot read is recorded in the facts.
func Read(ctx context.Context, n *node.Node, name string, table *kubesettings.Table) (upgradecheck.Facts, error) {
	l := &looking{node: n, r: upgradecheck.NewReader(table), about: upgradecheck.Node{Result: upgradecheck.NodeRead, Read: []string{}}}
	reply, err := n.Swap.Inspect(ctx, &agentv1.InspectRequest{Components: []*agentv1.InspectComponent{
		component(kubelet, kubeletExe), component(kubeProxy, kubeProxyExe), component(containerd, containerdExe)}})
	if err != nil {
		return upgradecheck.Facts{}, err
	}
	l.asked++
	l.about.Name = cmp.Or(name, strings.ToLower(reply.GetFacts().GetHostname()), n.Name)
	for _, c := range reply.GetComponents() {
		if c.GetService() == nil {
			continue
		}
		switch version := cmp.Or(c.GetStarts().GetVersion(), c.GetVersion()); c.GetName() {
		case kubelet:
			l.about.Kubelet = version
			l.service(ctx, kubesettings.Kubelet, c)
		case kubeProxy:
			l.about.KubeProxy = version
			l.service(ctx, kubesettings.KubeProxy, c)
		case containerd:
			l.about.Containerd = strings.TrimPrefix(version, "v")
			l.containerd(ctx, c)
		}
	}
	l.r.Nodes = append(l.r.Nodes, l.about)
	return l.r.Facts, ctx.Err()
}

func component(name, path string) *agentv1.InspectComponent {
	return &agentv1.InspectComponent{Name: name, Service: name, Destination: path, AskVersion: true}
}

// looking is the reading of one node.
type looking struct {
	node  *node.Node
	r     *upgradecheck.Reader
	about upgradecheck.Node
	asked int // requests so far
}

// place returns a place on the node.
func (l *looking) place(file, field string) upgradecheck.Place {
	return upgradecheck.Place{Node: l.about.Name, File: file, Field: field}
}

// file reads a file. ok is false if it does not exist, or cannot be read, which is recorded.
func (l *looking) file(ctx context.Context, path string) (content []byte, ok bool) {
	if l.asked >= most {
		l.r.Unreadable(l.place(path, ""), &tooManyError{})
		return nil, false
	}
	l.asked++
	content, err := smallfile.Read(ctx, l.node, path)
	switch {
	case errors.Is(err, fault.ErrNotExist):
		return nil, false
	case err != nil:
		l.r.Unreadable(l.place(path, ""), err)
		return nil, false
	}
	l.r.Texts++
	l.about.Read = append(l.about.Read, path)
	return content, true
}

// tooManyError reports a file that was not read, since the node has so many.
type tooManyError struct{}

func (e *tooManyError) Error() string {
	return "the node has more configuration files than swdt reads at once"
}

// service reads what a service of kubelet or kube-proxy starts.
func (l *looking) service(ctx context.Context, p kubesettings.Program, c *agentv1.ComponentState) {
	line := c.GetProgram().GetCommandLine()
	field := "service " + c.GetName()
	l.about.Read = append(l.about.Read, field)
	if line == "" {
		line = l.scripted(ctx, p, c)
	} else {
		l.r.CommandLine(p, line, l.place("", field))
	}
	if config := commandline.OnDrive(commandline.Flag(line, "config")); config != "" {
		l.config(ctx, p, config, upgradecheck.ConfigFile)
	}
	if folder := commandline.OnDrive(commandline.Flag(line, "config-dir")); folder != "" && p == kubesettings.Kubelet {
		l.dropIns(ctx, folder)
	}
}

// scripted reads the script that starts a program, and returns its text with line ends as blanks, in which flags can be
// looked for.
func (l *looking) scripted(ctx context.Context, p kubesettings.Program, c *agentv1.ComponentState) string {
	line := c.GetServiceConfig().GetCommandLine()
	if wrappers := c.GetProgram().GetWrappers(); len(wrappers) > 0 && strings.HasPrefix(strings.ToLower(wrappers[0]), "nssm") {
		line = l.nssm(ctx, c.GetName())
	}
	path := scriptIn(line)
	if path == "" {
		l.r.Unreadable(l.place("", "service "+c.GetName()), &unknownProgramError{c.GetProgram().GetUnknown()})
		return ""
	}
	content, ok := l.file(ctx, path)
	if !ok {
		return ""
	}
	decoded, err := windowstext.Decode(content)
	if err != nil {
		l.r.Unreadable(l.place(path, ""), err)
		return ""
	}
	l.r.Script(decoded.Content, l.place(path, ""))
	if p == kubesettings.Kubelet && strings.Contains(decoded.Content, "kubeadm-flags.env") {
		if flags, ok := l.file(ctx, kubeletargs.FlagsFile); ok {
			l.r.KubeadmFlags(string(flags), l.place(kubeletargs.FlagsFile, ""))
		}
	}
	return strings.NewReplacer("\n", " ", "`", "", `"`, " ", "'", " ").Replace(decoded.Content)
}

// unknownProgramError reports a service of which it is unknown how it starts its program.
type unknownProgramError struct{ why string }

func (e *unknownProgramError) Error() string {
	return cmp.Or(e.why, "its command line names no program") + ", and no script was found in its command line"
}

// nssm returns the program and the arguments that nssm starts.
func (l *looking) nssm(ctx context.Context, service string) string {
	var line []string
	for _, name := range []string{"Application", "AppParameters"} {
		l.asked++
		value, err := l.node.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: servicesKey + service + `\Parameters`, Name: name})
		if err != nil {
			l.r.Unreadable(l.place("", "service "+service), err)
			return ""
		}
		line = append(line, value.GetString_())
	}
	return strings.Join(line, " ")
}

// scriptIn returns the first word of a command line that is the path of a script.
func scriptIn(line string) string {
	for _, word := range commandline.Split("program " + line) {
		path := strings.Trim(word, `'"&`)
		if i := strings.LastIndex(path, "."); i > 0 && slices.Contains([]string{".ps1", ".cmd", ".bat"}, strings.ToLower(path[i:])) {
			return commandline.OnDrive(path)
		}
	}
	return ""
}

func (l *looking) config(ctx context.Context, p kubesettings.Program, path string, form upgradecheck.Form) {
	content, ok := l.file(ctx, path)
	if !ok {
		return
	}
	decoded, err := windowstext.Decode(content)
	if err != nil {
		l.r.Unreadable(l.place(path, ""), err)
		return
	}
	l.r.Config(p, []byte(decoded.Content), form, l.place(path, ""))
}

// dropIns reads the files of --config-dir.
func (l *looking) dropIns(ctx context.Context, folder string) {
	l.asked++
	list, err := l.node.Files.List(ctx, &agentv1.ListFilesRequest{Path: folder})
	if errors.Is(err, fault.ErrNotExist) {
		return
	}
	if err != nil {
		l.r.Unreadable(l.place(folder, ""), err)
		return
	}
	for _, entry := range list.GetEntries() {
		if strings.HasSuffix(strings.ToLower(entry.GetPath()), ".conf") {
			l.config(ctx, kubesettings.Kubelet, entry.GetPath(), upgradecheck.DropIn)
		}
	}
}

func (l *looking) containerd(ctx context.Context, c *agentv1.ComponentState) {
	line := c.GetProgram().GetCommandLine()
	path := commandline.OnDrive(cmp.Or(commandline.Flag(line, "config"), commandline.Flag(line, "c"), containerdFile))
	if content, ok := l.file(ctx, path); ok {
		l.r.Containerd(content, l.about.Containerd, l.place(path, ""))
	}
}
