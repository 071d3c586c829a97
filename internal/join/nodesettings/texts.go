package nodesettings

import (
	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// Kind is the kind of a text.
type Kind int

// The kinds of texts.
const (
	CommandLine  Kind = iota // of the program behind the wrappers of its service
	Script                   // the script that starts the program
	KubeadmFlags             // kubeadm-flags.env, if the script reads it
	ConfigFile               // the file of --config
	DropIn                   // a file of kubelet's --config-dir
	Containerd               // containerd's configuration
	CNI                      // the network configuration that containerd uses
)

// Text is a text from which a program reads its settings.
type Text struct {
	Program kubesettings.Program // "": containerd, or its network configuration
	Kind    Kind
	Path    string // of the file; "" for a command line
	Content []byte // of a file, as it is on the node
}

// Texts are the texts of one node, those of a program in the order in which it reads them. A later one wins, except that
// kubelet's flags win over its files.
type Texts struct {
	Node   upgradecheck.Node
	All    []Text
	Unread []upgradecheck.Unread
	// Overrides are those of Windows' features that an installer sets for some builds of Windows alone.
	Overrides []upgradecheck.Override
	// Services has the services of the programs that are services.
	Services map[kubesettings.Program]*agentv1.ComponentState
}

// Facts returns the settings of the texts.
func (t Texts) Facts(table *kubesettings.Table) upgradecheck.Facts {
	r := upgradecheck.NewReader(table)
	for _, text := range t.All {
		t.read(r, text)
	}
	r.Unread = append(r.Unread, t.Unread...)
	r.Nodes = append(r.Nodes, t.Node)
	r.Overrides = append(r.Overrides, t.Overrides...)
	return r.Facts
}

func (t Texts) read(r *upgradecheck.Reader, text Text) {
	place := upgradecheck.Place{Node: t.Node.Name, File: text.Path}
	if text.Path != "" {
		r.Texts++
	}
	switch text.Kind {
	case CommandLine:
		place.Field = "service " + string(text.Program)
		r.CommandLine(text.Program, string(text.Content), place)
		return
	case KubeadmFlags:
		r.KubeadmFlags(string(text.Content), place)
		return
	case CNI:
		r.CNI(text.Content, place)
		return
	case Containerd:
		r.Containerd(text.Content, t.Node.Containerd, place)
		return
	}
	decoded, err := windowstext.Decode(text.Content)
	switch {
	case err != nil:
		r.Unreadable(place, err)
	case text.Kind == Script:
		r.Script(decoded.Content, place)
	case text.Kind == DropIn:
		r.Config(text.Program, []byte(decoded.Content), upgradecheck.DropIn, place)
	default:
		r.Config(text.Program, []byte(decoded.Content), upgradecheck.ConfigFile, place)
	}
}
