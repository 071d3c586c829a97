// Package nodesettings reads the settings of kubelet, kube-proxy and containerd on a node, which package upgradecheck
// holds against newer versions: the command lines of the services, the scripts that start them, and their configuration
// files. It makes one request for the services and one for each file, and changes nothing.
package nodesettings

import (
	"cmp"
	"context"
	"errors"
	"regexp"
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
	texts, err := Gather(ctx, n, name)
	if err != nil {
		return upgradecheck.Facts{}, err
	}
	return texts.Facts(table), ctx.Err()
}

// Gather returns the texts from which the programs of a node read their settings. Its name and errors are those of Read.
func Gather(ctx context.Context, n *node.Node, name string) (Texts, error) {
	l := &looking{node: n, texts: Texts{Node: upgradecheck.Node{Result: upgradecheck.NodeRead, Read: []string{}},
		Services: map[kubesettings.Program]*agentv1.ComponentState{}}}
	reply, err := n.Swap.Inspect(ctx, &agentv1.InspectRequest{Components: []*agentv1.InspectComponent{
		component(kubelet, kubeletExe), component(kubeProxy, kubeProxyExe), component(containerd, containerdExe)}})
	if err != nil {
		return Texts{}, err
	}
	l.asked++
	about := &l.texts.Node
	about.Name = cmp.Or(name, strings.ToLower(reply.GetFacts().GetHostname()), n.Name)
	for _, c := range reply.GetComponents() {
		if c.GetService() == nil {
			continue
		}
		switch version := cmp.Or(c.GetStarts().GetVersion(), c.GetVersion()); c.GetName() {
		case kubelet:
			about.Kubelet = version
			l.service(ctx, kubesettings.Kubelet, c)
		case kubeProxy:
			about.KubeProxy = version
			l.service(ctx, kubesettings.KubeProxy, c)
		case containerd:
			about.Containerd = strings.TrimPrefix(version, "v")
			l.containerd(ctx, c)
		}
	}
	return l.texts, nil
}

func component(name, path string) *agentv1.InspectComponent {
	return &agentv1.InspectComponent{Name: name, Service: name, Destination: path, AskVersion: true}
}

// looking is the reading of one node.
type looking struct {
	node  *node.Node
	texts Texts
	asked int // requests so far
}

// unreadable records that a place could not be read.
func (l *looking) unreadable(file, field string, err error) {
	l.texts.Unread = append(l.texts.Unread, upgradecheck.Unread{
		Place: upgradecheck.Place{Node: l.texts.Node.Name, File: file, Field: field}, Why: err.Error()})
}

// file reads a file and records it as a text. ok is false if it does not exist, or cannot be read, which is recorded.
func (l *looking) file(ctx context.Context, p kubesettings.Program, kind Kind, path string) (content []byte, ok bool) {
	if l.asked >= most {
		l.unreadable(path, "", &tooManyError{})
		return nil, false
	}
	l.asked++
	content, err := smallfile.Read(ctx, l.node, path)
	switch {
	case errors.Is(err, fault.ErrNotExist):
		return nil, false
	case err != nil:
		l.unreadable(path, "", err)
		return nil, false
	}
	l.texts.Node.Read = append(l.texts.Node.Read, path)
	l.texts.All = append(l.texts.All, Text{Program: p, Kind: kind, Path: path, Content: content})
	return content, true
}

// tooManyError reports a file that was not read, since the node has so many.
type tooManyError struct{}

func (e *tooManyError) Error() string {
	return "the node has more configuration files than swdt reads at once"
}

// service reads what a service of kubelet or kube-proxy starts.
func (l *looking) service(ctx context.Context, p kubesettings.Program, c *agentv1.ComponentState) {
	l.texts.Services[p] = c
	line := c.GetProgram().GetCommandLine()
	l.texts.Node.Read = append(l.texts.Node.Read, "service "+c.GetName())
	if line == "" {
		line = l.scripted(ctx, p, c)
	} else {
		l.texts.All = append(l.texts.All, Text{Program: p, Kind: CommandLine, Content: []byte(line)})
	}
	if config := commandline.OnDrive(commandline.Flag(line, "config")); config != "" {
		l.file(ctx, p, ConfigFile, config)
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
		l.unreadable("", "service "+c.GetName(), &unknownProgramError{c.GetProgram().GetUnknown()})
		return ""
	}
	content, ok := l.file(ctx, p, Script, path)
	if !ok {
		return ""
	}
	decoded, err := windowstext.Decode(content)
	if err != nil { // Facts records it
		return ""
	}
	if p == kubesettings.Kubelet && strings.Contains(decoded.Content, "kubeadm-flags.env") {
		l.file(ctx, p, KubeadmFlags, kubeletargs.FlagsFile)
	}
	plain := strings.NewReplacer("\n", " ", "`", "", `"`, " ", "'", " ").Replace(decoded.Content)
	return systemDrive().ReplaceAllString(plain, "C:")
}

// systemDrive matches the variable before paths in image-builder's script
// (images/capi/ansible/windows/roles/kubernetes/templates/StartKubelet.ps1 of kubernetes-sigs/image-builder ae63061).
func systemDrive() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\$\{?env:SystemDrive\}?|%SystemDrive%`)
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
			l.unreadable("", "service "+service, err)
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

// dropIns reads the files of --config-dir.
func (l *looking) dropIns(ctx context.Context, folder string) {
	l.asked++
	list, err := l.node.Files.List(ctx, &agentv1.ListFilesRequest{Path: folder})
	if errors.Is(err, fault.ErrNotExist) {
		return
	}
	if err != nil {
		l.unreadable(folder, "", err)
		return
	}
	for _, entry := range list.GetEntries() {
		if strings.HasSuffix(strings.ToLower(entry.GetPath()), ".conf") {
			l.file(ctx, kubesettings.Kubelet, DropIn, entry.GetPath())
		}
	}
}

func (l *looking) containerd(ctx context.Context, c *agentv1.ComponentState) {
	line := c.GetProgram().GetCommandLine()
	path := commandline.OnDrive(cmp.Or(commandline.Flag(line, "config"), commandline.Flag(line, "c"), containerdFile))
	l.file(ctx, "", Containerd, path)
}
