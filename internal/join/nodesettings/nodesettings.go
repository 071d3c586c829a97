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

// most bounds the requests for one node, unless they cost nothing. A node with all of them has a script for kubelet and one for kube-proxy, a
// configuration file of each program, kubeadm-flags.env and one drop-in.
const most = 10

// Options choose what is read.
type Options struct {
	Name string // of the node in the cluster; "": that of the machine, as kubelet chooses it
	// Windows also reads what only an upgrade of Windows changes: the CNI configuration, and overrides of Windows' features.
	Windows bool
	// Stored reports that the source has all answers, so that their number is not bounded.
	Stored bool
}

// Read returns the settings of a node. It fails only if the node does not list its services; a file that it cannot read is recorded in the facts.
func Read(ctx context.Context, n *node.Node, o Options, table *kubesettings.Table) (upgradecheck.Facts, error) {
	texts, err := Gather(ctx, n, o)
	if err != nil {
		return upgradecheck.Facts{}, err
	}
	return texts.Facts(table), ctx.Err()
}

// Gather returns the texts from which the programs of a node read their settings. Its errors are those of Read.
func Gather(ctx context.Context, n *node.Node, o Options) (Texts, error) {
	return From(ctx, live{n}, o, n.Name)
}

// Source answers the questions about one machine.
type Source interface {
	// Components returns the services of the programs, with the command lines behind their wrappers and with versions.
	Components(ctx context.Context) (*agentv1.InspectReply, error)
	// File returns the content of a file. One that does not exist is a fault.ErrNotExist.
	File(ctx context.Context, path string) ([]byte, error)
	// Folder returns the paths of the files in a folder. One that does not exist is a fault.ErrNotExist.
	Folder(ctx context.Context, path string) ([]string, error)
	// Values returns the values of a key of the registry. A key that does not exist is a fault.ErrNotExist.
	Values(ctx context.Context, key string) ([]*agentv1.RegistryValue, error)
}

// From returns the texts that a source has. other is the node's name if the options have none, and the machine's is unknown.
func From(ctx context.Context, from Source, o Options, other string) (Texts, error) {
	l := &looking{from: from, options: o, texts: Texts{Node: upgradecheck.Node{Result: upgradecheck.NodeRead, Read: []string{}},
		Services: map[kubesettings.Program]*agentv1.ComponentState{}}}
	reply, err := from.Components(ctx)
	if err != nil {
		return Texts{}, err
	}
	l.asked++
	about := &l.texts.Node
	about.Name = cmp.Or(o.Name, strings.ToLower(reply.GetFacts().GetHostname()), other)
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
	if l.options.Windows {
		l.overrides(ctx)
	}
	return l.texts, nil
}

// looking is the reading of one machine.
type looking struct {
	from  Source
	texts Texts
	asked int // requests so far

	options Options
}

// unreadable records that a place could not be read.
func (l *looking) unreadable(file, field string, err error) {
	l.texts.Unread = append(l.texts.Unread, upgradecheck.Unread{
		Place: upgradecheck.Place{Node: l.texts.Node.Name, File: file, Field: field}, Why: err.Error()})
}

// file reads a file and records it as a text. ok is false if it does not exist, or cannot be read, which is recorded.
func (l *looking) file(ctx context.Context, p kubesettings.Program, kind Kind, path string) (content []byte, ok bool) {
	if l.isFull() {
		l.unreadable(path, "", &tooManyError{})
		return nil, false
	}
	l.asked++
	content, err := l.from.File(ctx, path)
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

// isFull reports whether the node has been asked often enough.
func (l *looking) isFull() bool { return l.asked >= most && !l.options.Stored }

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
	l.asked++
	values, err := l.from.Values(ctx, servicesKey+service+`\Parameters`)
	if err != nil {
		l.unreadable("", "service "+service, err)
		return ""
	}
	return textOf(values, "Application") + " " + textOf(values, "AppParameters")
}

// textOf returns the text of a value by its name; "": there is none.
func textOf(values []*agentv1.RegistryValue, name string) string {
	for _, v := range values {
		if strings.EqualFold(v.GetName(), name) {
			return v.GetString_()
		}
	}
	return ""
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
	files, err := l.from.Folder(ctx, folder)
	if errors.Is(err, fault.ErrNotExist) {
		return
	}
	if err != nil {
		l.unreadable(folder, "", err)
		return
	}
	for _, path := range files {
		if strings.HasSuffix(strings.ToLower(path), ".conf") {
			l.file(ctx, kubesettings.Kubelet, DropIn, path)
		}
	}
}

func (l *looking) containerd(ctx context.Context, c *agentv1.ComponentState) {
	line := c.GetProgram().GetCommandLine()
	path := commandline.OnDrive(cmp.Or(commandline.Flag(line, "config"), commandline.Flag(line, "c"), containerdFile))
	content, _ := l.file(ctx, "", Containerd, path)
	if l.options.Windows {
		l.network(ctx, cniFolder(content))
	}
}
